# Copies the content of the folder $1 into the volume at $2, where that is empty. 121: $1 is no folder.
[ -e "$1" ] || exit 0
[ -d "$1" ] || exit 121
[ -z "$(ls -A "$2")" ] || exit 0
cp -a "$1/." "$2/"
