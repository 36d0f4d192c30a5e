# Writes standard input to a file: path, size, owner, mode, time, way, name of the part.
target=$1 size=$2 owner=$3
make_directory "${target%/*}"
if [ -d "$target" ] && [ ! -L "$target" ]; then exit 92; fi
if [ "$6" = place ]; then
  cat >"$target" || exit 98
  exit 0
fi
part=${target%/*}/$7
trap 'rm -f -- "$part"' EXIT
trap 'exit 98' HUP INT TERM
umask 077
cat >"$part" || exit 98
# A stream that was cut ends like one that is whole.
if [ "$(wc -c <"$part")" -ne "$size" ]; then exit 94; fi
if [ -n "$owner" ]; then chown "$owner" "$part" || exit 98; fi
chmod "$4" "$part" || exit 98
touch -d "@$5" "$part" 2>/dev/null
# A move onto a link to a directory goes into that directory.
if [ -L "$target" ]; then rm -f -- "$target" || exit 98; fi
mv -f -- "$part" "$target" || exit 98
