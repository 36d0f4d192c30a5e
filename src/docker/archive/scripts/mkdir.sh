# Makes a directory: path, owner, mode.
owner=$2
if [ -d "$1" ]; then exit 0; fi
make_directory "$1"
chmod "$3" "$1" || exit 98
