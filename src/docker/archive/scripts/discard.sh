# Removes files: paths. The engine may still be writing what it has of a stream that was cut.
rm -f -- "$@"
sleep 1
rm -f -- "$@"
