# Prints what the service in the folder $1 has printed, and to stderr how many bytes of it are lost. 120: never started.
d=$1
[ -f "$d/log" ] || exit 120
before=$d/log.1 last=$d/log.2
[ -f "$before" ] || before=/dev/null
[ -f "$last" ] || last=/dev/null
# All are opened before one is read: another part may begin at any moment.
{
  cat
  cat <&3
  cat <&4
} <"$d/log" 3<"$before" 4<"$last"
cat "$d/lost" >&2 2>/dev/null
exit 0
