# Kills every process of one command. Uses nothing but what every POSIX shell has built in, so that it works in any
# image with a shell and when no process may be forked any more. $1 marks the command; $2 is the signal.
# First all processes are found and stopped, round after round until rounds find none, so that none can run away by
# forking; then all are killed. Another signal than KILL is sent without stopping them. Prints "killed N survivors M".
marker=GYM_SANDBOX_EXEC=$1
signal=$2
me=$$
known=' ' sessions=' ' main='' count=0

# Reads state, parent and session of process $1. The name in parentheses may hold anything, so it is cut off first.
stat_of() {
  line=
  { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null
  # A name with a line break splits the line: the rest follows in the next ones.
  case $line in
    *') '*) ;;
    '') return 1 ;;
    *) { while IFS= read -r more; do line=$more; done <"/proc/$1/stat"; } 2>/dev/null ;;
  esac
  set -- ${line##*) }
  [ $# -gt 3 ] || return 1
  state=$1 parent=$2 session=$4
}

has_marker() {
  {
    while IFS= read -r entry || [ -n "$entry" ]; do
      case $entry in *"$marker"*) return 0 ;; esac
      entry=
    done <"/proc/$1/environ"
  } 2>/dev/null
  return 1
}

# Says whether process $1 holds one of the two pipes that the command was started with.
holds_pipe() {
  [ -n "$main" ] || return 1
  for own in 1 2; do
    for its in "/proc/$main/fd/1" "/proc/$main/fd/2"; do
      [ -p "$its" ] && [ "/proc/$1/fd/$own" -ef "$its" ] && return 0
    done
  done
  return 1
}

is_ours() {
  case $known in *" $parent "*) return 0 ;; esac
  case $sessions in *" $session "*) return 0 ;; esac
  has_marker "$1" || holds_pipe "$1"
}

# Finds processes that are not known yet, stops them and notes them. Fails when it finds none.
round() {
  found=1
  for directory in /proc/[0-9]*; do
    process=${directory#/proc/}
    [ "$process" = 1 ] || [ "$process" = "$me" ] && continue
    case $known in *" $process "*) continue ;; esac
    stat_of "$process" || continue
    case $state in Z | X) continue ;; esac
    is_ours "$process" || continue
    [ "$signal" = KILL ] && kill -s STOP "$process" 2>/dev/null
    known="$known$process " count=$((count + 1)) found=0
    # The process that the engine started has no parent in here; it leads the session that its children are in.
    if [ "$parent" = 0 ] && [ "$session" = "$process" ]; then main=$process; fi
    case $session in 0 | 1) ;; *) sessions="$sessions$session " ;; esac
  done
  return $found
}

# Counts the known processes that still live.
alive() {
  left=0
  for process in $known; do
    stat_of "$process" || continue
    case $state in Z | X) ;; *) left=$((left + 1)) ;; esac
  done
}

# Processes that fork and exit all the time are missed by one look in two: only many looks in a row that find nothing
# mean that nothing is left.
rounds=0 empty=0 enough=25
[ "$signal" = KILL ] || enough=1
while [ $empty -lt $enough ] && [ $rounds -lt 3000 ]; do
  if round; then empty=0; else empty=$((empty + 1)); fi
  rounds=$((rounds + 1))
done
for process in $known; do
  kill -s "$signal" "$process" 2>/dev/null
done
if [ "$signal" != KILL ]; then
  echo "killed $count survivors 0"
  exit 0
fi
looks=0
alive
while [ $left -gt 0 ] && [ $looks -lt 300 ]; do
  alive
  looks=$((looks + 1))
done
echo "killed $((count - left)) survivors $left"
