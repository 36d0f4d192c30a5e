# Unpacks standard input into a directory: path, owner.
owner=$2
if [ -L "$1" ] && [ "$3" = replace ]; then rm -f -- "$1" || exit 98; fi
make_directory "$1"
exec tar -xpf - -C "$1/"
