# Prints a line about a file and its content, or a directory as an archive: path, what is wanted, how it was written.
if [ ! -e "$1" ]; then exit 91; fi
if [ -d "$1" ]; then
  if [ "$2" = file ]; then exit 92; fi
  echo D
  exec tar -cf - -C "$1/" .
fi
if [ "$3" = directory ]; then exit 93; fi
if [ ! -f "$1" ]; then exit 96; fi
if about=$(stat -L -c '%s %a %Y' -- "$1" 2>/dev/null); then echo "F $about"; else echo "F 0 644 0"; fi
exec cat -- "$1"
