# Kills every process of one command, or of many. Uses nothing but what every POSIX shell has built in, so that it works
# in any image with a shell and when no process may be forked any more. $1 marks the command; $2 is the signal; $3, where
# the engine says that the command runs, is the most clock ticks that it can be older than this script; the rest are
# processes that are known to be the command's. Of many commands $1 has the marks, with spaces between; then the signal is
# KILL, and there is no more than that.
# First all processes are found and stopped, round after round until rounds find none, so that none can run away by
# forking; then all are killed. Another signal than KILL is sent without stopping them; one with a dash before its name
# only to the process group that the command leads, which is then all that is counted.
# Prints "killed N survivors M hidden H" for each command, where H processes did not let this user look at their
# environment, and then which ones survive.
set +efu
variable=GYM_SANDBOX_EXEC=
signal=$2
oldest=$3
me=$$
# Processes, the sessions that they are in, and those that the engine started, each with the number of its command.
known=' ' sessions=' ' mains=' '
# Processes that were looked at since the last one was found, and are of no command.
strangers=' '
unmarked=' ' hidden=0
commands='' command=0
for mark in $1; do
  command=$((command + 1))
  commands="$commands $mark:$command"
  eval "count$command=0 left$command=0 which$command="
done
shift 3

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

# Says whether a line of an environment holds the mark of a command, and sets `command` to the number of that. Another mark
# sets `other`.
has_mark() {
  case $1 in *"$variable"*) other=1 ;; *) return 1 ;; esac
  for candidate in $commands; do
    case $1 in
      *"$variable${candidate%:*}"*)
        command=${candidate#*:}
        return 0
        ;;
    esac
  done
  return 1
}

# The same of the environment of the process that was looked at last. Returns 2 when it can't be read.
environment_has_mark() {
  entry=
  {
    while IFS= read -r entry || [ -n "$entry" ]; do
      has_mark "$entry" && return 0
      entry=
    done <"$at/environ"
  } 2>/dev/null || return 2
  return 1
}

has_marker() {
  # A process without a marker never gets it, but for one that the engine is still starting.
  case $unmarked in *" $1:$start "*) return 1 ;; esac
  environment_has_mark
  case $? in
    0) return 0 ;;
    2) hidden=$((hidden + 1)) ;;
  esac
  [ "$parent" = 0 ] || unmarked="$unmarked$1:$start "
  return 1
}

# Says whether the process that was looked at last holds one of the two pipes that a command was started with.
holds_pipe() {
  for main in $mains; do
    for own in 1 2; do
      for its in "/proc/${main%:*}/fd/1" "/proc/${main%:*}/fd/2"; do
        if [ -p "$its" ] && [ "$at/fd/$own" -ef "$its" ]; then
          command=${main#*:}
          return 0
        fi
      done
    done
  done
  return 1
}

# Says whether process $1, which was looked at last, is one of a command, and sets `command` to the number of that.
is_ours() {
  other=0
  case $known in
    *" $parent:"*)
      command=${known#*" $parent:"} command=${command%% *}
      return 0
      ;;
  esac
  case $sessions in
    *" $session:"*)
      command=${sessions#*" $session:"} command=${command%% *}
      return 0
      ;;
  esac
  has_marker "$1" || holds_pipe
}

# Stops process $1 of command `command` and notes it.
take() {
  [ "$signal" = KILL ] && kill -s STOP "$1" 2>/dev/null
  known="$known$1:$command " strangers=' '
  eval "count$command=\$((count$command + 1))"
  # The process that the engine started has no parent in here; it leads the session that its children are in.
  if [ "$parent" = 0 ] && [ "$session" = "$1" ]; then mains="$mains$1:$command "; fi
  case $session in
    0 | 1) ;;
    *) case $sessions in *" $session:"*) ;; *) sessions="$sessions$session:$command " ;; esac ;;
  esac
}

# Finds processes that are not known yet and takes them. Fails when it finds none. A stranger becomes one of a command only
# when its parent is found to be, so it is looked at again after that; one that the engine is still starting has no mark yet,
# and is looked at in each round.
round() {
  found=1
  for directory in /proc/[0-9]*; do
    process=${directory#/proc/}
    [ "$process" = 1 ] || [ "$process" = "$me" ] && continue
    case $known in *" $process:"*) continue ;; esac
    case $strangers in *" $process "*) continue ;; esac
    stat_of "$process" || continue
    if is_ours "$process"; then
      take "$process"
      found=0
    elif [ "$parent" != 0 ] || [ $other = 1 ]; then
      strangers="$strangers$process "
    fi
  done
  return $found
}

# A command such as `env -i` has cleared its own marker, and a setuid one hides it. When it still runs, and only one
# process that the engine started shows no command's marker, it is that one. Fails when there is none, or more than one:
# then `several` is 1.
take_unmarked() {
  only='' several=0
  [ -n "$oldest" ] && [ "$mains" = ' ' ] || return 1
  for directory in /proc/[0-9]*; do
    process=${directory#/proc/}
    [ "$process" = 1 ] || [ "$process" = "$me" ] && continue
    case $strangers in *" $process "*) continue ;; esac
    stat_of "$process" || continue
    [ "$parent" = 0 ] && [ "$session" = "$process" ] || continue
    [ $((born - start)) -le "$oldest" ] || continue
    environment_has "$variable" && continue
    [ -z "$only" ] || { several=1; return 1; }
    only=$process
  done
  command=1
  [ -n "$only" ] && stat_of "$only" && take "$only"
}

# Counts the known processes that still live.
alive() {
  left=0
  for candidate in $commands; do
    eval "left${candidate#*:}=0 which${candidate#*:}="
  done
  for process in $known; do
    command=${process#*:} process=${process%:*}
    stat_of "$process" || continue
    left=$((left + 1))
    eval "left$command=\$((left$command + 1)) which$command=\"\$which$command $process\""
  done
}

stat_of "$me" && born=$start || oldest=
command=1
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
    count1=0
    main=${mains% } main=${main##* } main=${main%:*}
    # Some shells take a group only behind two dashes, others only without.
    [ -n "$main" ] && { kill -s "${signal#-}" "-$main" || kill -s "${signal#-}" -- "-$main"; } 2>/dev/null && count1=1
    known=' '
    ;;
esac
for process in $known; do
  kill -s "$signal" "${process%:*}" 2>/dev/null
done
# Nobody sees more than root.
while read -r name user rest; do
  [ "$name $user" = "Uid: 0" ] && hidden=0
done <"/proc/$me/status"
if [ "$signal" != KILL ]; then
  echo "killed $count1 survivors 0 hidden $hidden"
  exit 0
fi
looks=0
alive
while [ $left -gt 0 ] && [ $looks -lt 300 ]; do
  alive
  looks=$((looks + 1))
done
for candidate in $commands; do
  command=${candidate#*:}
  eval "echo \"killed \$((count$command - left$command)) survivors \$left$command hidden $hidden\$which$command\""
done
