# Removes what is at a path: path, how much, how it was written.
if [ ! -e "$1" ] && [ ! -L "$1" ]; then
  up=${1%/*}
  while [ -n "$up" ]; do
    if [ -e "$up" ] && [ ! -d "$up" ]; then exit 93; fi
    up=${up%/*}
  done
  exit 91
fi
if [ "$3" = directory ] && [ ! -d "$1" ]; then exit 93; fi
if [ ! -d "$1" ] || [ -L "$1" ]; then
  rm -f -- "$1" || exit 98
elif [ "$2" = recursive ]; then
  rm -rf -- "$1" || exit 98
else
  rmdir -- "$1" || exit 98
fi
