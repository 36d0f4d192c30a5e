# Waits for a word on standard input, then gives an uploaded part its name, or removes it: part, path.
# Input that ends without the word comes from a caller that is gone.
word=
IFS= read -r word
if [ "$word" = keep ]; then
  if [ -d "$2" ] && [ ! -L "$2" ]; then
    rm -f -- "$1"
    exit 92
  fi
  if [ -L "$2" ]; then rm -f -- "$2" || exit 98; fi
  mv -f -- "$1" "$2" || exit 98
  exit 0
fi
rm -f -- "$1"
echo removed
# The engine may still be writing what it has of a stream that was cut.
sleep 1
rm -f -- "$1"
