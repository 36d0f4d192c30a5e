# Kills every process of one command. Uses nothing but what every POSIX shell has built in, so that it works in any
# image with a shell and when no process may be forked any more. $1 marks the command; $2 is the signal; $3, where the
# engine says that the command runs, is the most clock ticks that it can be older than this script; the rest are processes
# that are known to be the command's.
# First all processes are found and stopped, round after round until rounds find none, so that none can run away by
# forking; then all are killed. Another signal than KILL is sent without stopping them; one with a dash before its name
# only to the process group that the command leads, which is then all that is counted.
# Prints "killed N survivors M hidden H", where H processes did not let this user look at their environment, and then
# which ones survive.
set +efu
variable=GYM_SANDBOX_EXEC=
marker=$variable$1
signal=$2
oldest=$3
shift 3
me=$$
known=' ' sessions=' ' unmarked=' ' main='' count=0 hidden=0

# Reads state, parent, session and start of process $1, and finds the directory `at` that tells the rest of it. The name
# in parentheses may hold anything, line breaks and parentheses, too: all lines are read and everything up to the last
# parenthesis is cut off.
stat_of() {
  line=
  { while IFS= read -r more; do line="$line$more "; done <"/proc/$1/stat"; } 2>/dev/null
  case $line in *') '*) ;; *) return 1 ;; esac
  at=/proc/$1
  set -- ${line##*) }
  [ $# -gt 19 ] || return 1
  state=$1 parent=$2 session=$4 start=${20}
  case $state in
    X) return 1 ;;
    Z)
      # The first thread of a process may end before the others, which then tell more than it: only a process without
      # others is dead.
      set -- "$at/task"/*
      [ $# -gt 1 ] || return 1
      [ "$1" = "$at/task/${at#/proc/}" ] && shift
      at=$1
      ;;
  esac
}

# Says whether the environment of the process that was looked at last holds $1. Returns 2 when it can't be read.
environment_has() {
  entry=
  {
    while IFS= read -r entry || [ -n "$entry" ]; do
      case $entry in *"$1"*) return 0 ;; esac
      entry=
    done <"$at/environ"
  } 2>/dev/null || return 2
  return 1
}

has_marker() {
  # A process without the marker never gets it, but for one that the engine is still starting.
  case $unmarked in *" $1:$start "*) return 1 ;; esac
  environment_has "$marker"
  case $? in
    0) return 0 ;;
    2) hidden=$((hidden + 1)) ;;
  esac
  [ "$parent" = 0 ] || unmarked="$unmarked$1:$start "
  return 1
}

# Says whether the process that was looked at last holds one of the two pipes that the command was started with.
holds_pipe() {
  [ -n "$main" ] || return 1
  for own in 1 2; do
    for its in "/proc/$main/fd/1" "/proc/$main/fd/2"; do
      [ -p "$its" ] && [ "$at/fd/$own" -ef "$its" ] && return 0
    done
  done
  return 1
}

is_ours() {
  case $known in *" $parent "*) return 0 ;; esac
  case $sessions in *" $session "*) return 0 ;; esac
  has_marker "$1" || holds_pipe
}

# Stops process $1 and notes it.
take() {
  [ "$signal" = KILL ] && kill -s STOP "$1" 2>/dev/null
  known="$known$1 " count=$((count + 1))
  # The process that the engine started has no parent in here; it leads the session that its children are in.
  if [ "$parent" = 0 ] && [ "$session" = "$1" ]; then main=$1; fi
  case $session in 0 | 1) ;; *) sessions="$sessions$session " ;; esac
}

# Finds processes that are not known yet and takes them. Fails when it finds none.
round() {
  found=1
  for directory in /proc/[0-9]*; do
    process=${directory#/proc/}
    [ "$process" = 1 ] || [ "$process" = "$me" ] && continue
    case $known in *" $process "*) continue ;; esac
    stat_of "$process" || continue
    is_ours "$process" || continue
    take "$process"
    found=0
  done
  return $found
}

# A command such as `env -i` has cleared its own marker, and a setuid one hides it. When it still runs, and only one
# process that the engine started shows no command's marker, it is that one. Fails when there is none, or more than one:
# then `several` is 1.
take_unmarked() {
  only='' several=0
  [ -n "$oldest" ] && [ -z "$main" ] || return 1
  for directory in /proc/[0-9]*; do
    process=${directory#/proc/}
    [ "$process" = 1 ] || [ "$process" = "$me" ] && continue
    stat_of "$process" || continue
    [ "$parent" = 0 ] && [ "$session" = "$process" ] || continue
    [ $((born - start)) -le "$oldest" ] || continue
    environment_has "$variable" && continue
    [ -z "$only" ] || { several=1; return 1; }
    only=$process
  done
  [ -n "$only" ] && stat_of "$only" && take "$only"
}

# Counts the known processes that still live.
alive() {
  left=0 which=
  for process in $known; do
    stat_of "$process" && left=$((left + 1)) which="$which $process"
  done
}

stat_of "$me" && born=$start || oldest=
for process in "$@"; do
  stat_of "$process" && take "$process"
done
# Processes that fork and exit all the time are missed by one look in two: only many looks in a row that find nothing
# mean that nothing is left. The engine may be starting others, which have no marker yet: that is waited for.
rounds=0 empty=0 enough=25 several=0
[ "$signal" = KILL ] || enough=1
while [ $rounds -lt 3000 ]; do
  if round || take_unmarked; then empty=0; else empty=$((empty + 1)); fi
  rounds=$((rounds + 1))
  [ $empty -ge $enough ] || continue
  [ $several = 1 ] && [ $empty -lt 300 ] || break
done
case $signal in
  -*)
    count=0
    # Some shells take a group only behind two dashes, others only without.
    [ -n "$main" ] && { kill -s "${signal#-}" "-$main" || kill -s "${signal#-}" -- "-$main"; } 2>/dev/null && count=1
    known=' '
    ;;
esac
for process in $known; do
  kill -s "$signal" "$process" 2>/dev/null
done
# Nobody sees more than root.
while read -r name user rest; do
  [ "$name $user" = "Uid: 0" ] && hidden=0
done <"/proc/$me/status"
if [ "$signal" != KILL ]; then
  echo "killed $count survivors 0 hidden $hidden"
  exit 0
fi
looks=0
alive
while [ $left -gt 0 ] && [ $looks -lt 300 ]; do
  alive
  looks=$((looks + 1))
done
echo "killed $((count - left)) survivors $left hidden $hidden$which"
