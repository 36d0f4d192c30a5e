# Prints the names of a directory, the texts of its links, and numbers about each: path.
if [ ! -e "$1" ]; then exit 91; fi
if [ ! -d "$1" ]; then exit 93; fi
cd -- "$1/" || exit 98
printf '%s\0' ./* ./.*
printf '\0'
for name in ./* ./.*; do
  if [ -L "$name" ]; then
    printf '%s\0' "$name"
    readlink -n -- "$name"
    printf '\0'
  fi
done
printf '\0'
# A name that is gone by now has no line; each line ends with its name.
printf '%s\0' ./* ./.* | xargs -0 stat -c '%f %s %Y %u %g %n' -- 2>/dev/null
exit 0
