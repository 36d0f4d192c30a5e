# Starts a service: $1 is its folder, $2 its name, $3 how many bytes a part of its log has, the rest its command.
# 0: it runs, 120: no folder, 121: it runs already.
d=$1 n=$2 most=$3
shift 3
# Every user of the sandbox may have services: as in `/tmp`, each folder is of who made it.
f=${d%/*}
[ -d "$f" ] || { mkdir -p "${f%/*}" && (umask 0 && mkdir -m 1777 "$f"); } 2>/dev/null
# With `:` a shell would end where the file can't be written.
{ mkdir -p "$d" && true >>"$d/log"; } 2>/dev/null || exit 120
# When the process $1 began; nothing when it is gone.
began() {
  line=
  IFS= read -r line 2>/dev/null <"/proc/$1/stat"
  rest=${line##*) }
  case $rest in '' | Z* | X*) ;; *) (set -- $rest; shift 19 2>/dev/null && echo "$1") ;; esac
}
# Says whether the process that a file names by its number and its beginning is there.
lives() {
  IFS=' ' read -r pid since 2>/dev/null <"$1" && [ -n "$since" ] && [ "$(began "$pid")" = "$since" ]
}
# One start of a name at a time. A start that was killed in the middle is not waited for.
tries=0
until (set -C && echo "$$ $(began $$)" >"$d/starting") 2>/dev/null; do
  tries=$((tries + 1))
  [ "$tries" -gt 300 ] && exit 122
  # An empty one is being written.
  if ! lives "$d/starting" && { [ -s "$d/starting" ] || [ "$tries" -gt 20 ]; }; then
    # Somebody else may have been quicker, and begun: what lives is put back.
    mv "$d/starting" "$d/starting.$$" 2>/dev/null || continue
    lives "$d/starting.$$" && mv "$d/starting.$$" "$d/starting"
    rm -f "$d/starting.$$"
    continue
  fi
  sleep 0.05 2>/dev/null || sleep 1
done
trap 'rm -f "$d/starting"' EXIT
[ ! -f "$d/exit" ] && lives "$d/pid" && exit 121
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
