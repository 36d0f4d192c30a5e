# Starts a service: $1 is its folder, $2 its name, $3 how many bytes a part of its log has, the rest its command.
# 0: it runs, 120: no folder, 121: it runs already.
d=$1 n=$2 most=$3
shift 3
mkdir -p "$d" && : >>"$d/log" || exit 120
if [ ! -f "$d/exit" ] && IFS=' ' read -r pid began 2>/dev/null <"$d/pid"; then
  line=
  IFS= read -r line 2>/dev/null <"/proc/$pid/stat"
  rest=${line##*) }
  now=$(set -- $rest; shift 19 2>/dev/null && echo "$1")
  case $rest in '' | Z* | X*) ;; *) [ "$now" = "$began" ] && exit 121 ;; esac
fi
# A new file: what an earlier service has left running keeps the old one, and notices later.
rm -f "$d/pid" "$d/exit" "$d/log" "$d/log.1" "$d/log.2" "$d/lost"
: >"$d/log"
# What watches the service outlives the signals that end it, to write down its exit code.
watch='d=$1 most=$2
shift 2
IFS= read -r line </proc/$$/stat
rest=${line##*) }
began=$(set -- $rest; shift 19; echo "$1")
me="$$ $began"
run() {
  trap : TERM INT HUP QUIT
  echo "$me" >"$d/pid.new" && mv "$d/pid.new" "$d/pid"
  "$@"
  code=$?
  echo "$code" >"$d/exit.new" && mv "$d/exit.new" "$d/exit"
}
# Keeps the beginning of what is printed, and of the rest the last one or two parts.
keep() {
  trap "" TERM INT HUP QUIT
  LC_ALL=C
  export LC_ALL
  part=log
  lost=0
  while :; do
    said=$(dd bs=4096 count=512 2>&1 >>"$d/$part")
    case "
$said" in
    *"
0+0 records in"*) return ;;
    *"records in"*) ;;
    *) exec cat >/dev/null ;;
    esac
    # Children that a service has left print on: not over what the next one of its name prints.
    IFS= read -r now 2>/dev/null <"$d/pid"
    [ "$now" = "$me" ] || exec cat >/dev/null
    [ "$(wc -c <"$d/$part")" -lt "$most" ] && continue
    if [ "$part" = log ]; then
      part=log.2
      continue
    fi
    if [ -f "$d/log.1" ]; then
      lost=$((lost + $(wc -c <"$d/log.1")))
      echo "$lost" >"$d/lost"
    fi
    mv "$d/log.2" "$d/log.1"
  done
}
trap : TERM INT HUP QUIT
if command -v dd && command -v wc; then
  run "$@" 2>&1 | keep
else
  run "$@" >>"$d/log" 2>&1
fi'
GYM_SANDBOX_SERVICE=$n
export GYM_SANDBOX_SERVICE
if command -v setsid >/dev/null 2>&1; then
  setsid sh -c "$watch" service "$d" "$most" "$@" </dev/null >/dev/null 2>&1 &
else
  sh -c "$watch" service "$d" "$most" "$@" </dev/null >/dev/null 2>&1 &
fi
i=0
until [ -f "$d/pid" ]; do
  i=$((i + 1))
  [ "$i" -gt 200 ] && exit 122
  sleep 0.05 2>/dev/null || sleep 1
done
