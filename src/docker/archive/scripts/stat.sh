# Prints numbers about what is at a path, and the text of a link: path, how it was written.
if [ "$2" = directory ]; then
  if [ ! -e "$1" ]; then exit 91; fi
  if [ ! -d "$1" ]; then exit 93; fi
  exec stat -L -c '%f %s %Y %u %g' -- "$1"
fi
if [ ! -e "$1" ] && [ ! -L "$1" ]; then
  up=${1%/*}
  while [ -n "$up" ]; do
    if [ -e "$up" ] && [ ! -d "$up" ]; then exit 93; fi
    up=${up%/*}
  done
  exit 91
fi
stat -c '%f %s %Y %u %g' -- "$1" || exit 98
if [ -L "$1" ]; then readlink -n -- "$1"; fi
exit 0
