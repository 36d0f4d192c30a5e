# Runs the program of a service: $1 is its folder, the rest the program. Writes down that it began, what it prints, of
# which the last one to two MiB are kept, and its exit code. 120: nothing can be written to the folder.
d=$1
shift
keep() {
  trap '' TERM INT HUP QUIT
  while :; do
    said=$(LC_ALL=C dd bs=4096 count=256 2>&1 >>"$d/log")
    case "
$said" in
    *"
0+0 records in"*) break ;;
    *"records in"*) mv "$d/log" "$d/log.before" ;;
    *) exec cat >/dev/null ;;
    esac
  done
  : >"$d/drained"
}
: >"$d/log" || exit 120
if command -v dd >/dev/null 2>&1 && mkfifo "$d/output" 2>/dev/null; then
  keep <"$d/output" >/dev/null 2>&1 &
  exec >"$d/output" 2>&1
  rm "$d/output"
else
  : >"$d/drained"
  exec >>"$d/log" 2>&1
fi
: >"$d/started"
"$@"
code=$?
echo "$code" >"$d/exit.new" && mv "$d/exit.new" "$d/exit"
# What it printed is read before this ends; children that go on printing are not waited for.
exec >/dev/null 2>&1
i=0
until [ -f "$d/drained" ] || [ "$i" -ge 20 ]; do
  i=$((i + 1))
  sleep 0.05 || sleep 1
done
exit "$code"
