# Starts a service: $1 is its folder, $2 its name, the rest its command. 0: it runs, 120: no folder, 121: it runs already.
d=$1 n=$2
shift 2
mkdir -p "$d" && : >>"$d/log" || exit 120
if IFS=' ' read -r pid began 2>/dev/null <"$d/pid"; then
  line=
  IFS= read -r line 2>/dev/null <"/proc/$pid/stat"
  rest=${line##*) }
  now=$(set -- $rest; shift 19 2>/dev/null && echo "$1")
  case $rest in '' | Z* | X*) ;; *) [ "$now" = "$began" ] && exit 121 ;; esac
fi
rm -f "$d/pid" "$d/exit"
: >"$d/log"
# What watches the service outlives the signals that end it, to write down its exit code.
watch='d=$1; shift
trap : TERM INT HUP QUIT
IFS= read -r line </proc/$$/stat
rest=${line##*) }
began=$(set -- $rest; shift 19; echo "$1")
echo "$$ $began" >"$d/pid.new" && mv "$d/pid.new" "$d/pid"
"$@"
code=$?
echo "$code" >"$d/exit.new" && mv "$d/exit.new" "$d/exit"'
GYM_SANDBOX_SERVICE=$n
export GYM_SANDBOX_SERVICE
if command -v setsid >/dev/null 2>&1; then
  setsid sh -c "$watch" service "$d" "$@" </dev/null >>"$d/log" 2>&1 &
else
  sh -c "$watch" service "$d" "$@" </dev/null >>"$d/log" 2>&1 &
fi
i=0
until [ -f "$d/pid" ]; do
  i=$((i + 1))
  [ "$i" -gt 200 ] && exit 122
  sleep 0.05 2>/dev/null || sleep 1
done
