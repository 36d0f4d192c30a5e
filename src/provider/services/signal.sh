# Sends the signal $2 to every process of the service $1, and prints how many there are: those that have its mark in their
# environment, and all that these have started, which may have thrown theirs away.
found=' '
for file in /proc/[0-9]*/environ; do
  pid=${file#/proc/}
  pid=${pid%/environ}
  [ "$pid" = $$ ] && continue
  if tr '\000' '\n' 2>/dev/null <"$file" | grep -qxF "GYM_SANDBOX_SERVICE=$1"; then
    found="$found$pid "
  fi
done 2>/dev/null
grown=1
while [ -n "$grown" ]; do
  grown=
  for file in /proc/[0-9]*/stat; do
    pid=${file#/proc/}
    pid=${pid%/stat}
    case $found in *" $pid "*) continue ;; esac
    IFS= read -r line <"$file" || continue
    # Behind the name, which may hold anything, come the state and the parent.
    rest=${line##*) }
    case $rest in Z* | X*) continue ;; esac
    rest=${rest#? }
    case $found in *" ${rest%% *} "*) found="$found$pid " grown=1 ;; esac
  done 2>/dev/null
done
count=0
for pid in $found; do
  kill "-$2" "$pid" 2>/dev/null && count=$((count + 1))
done
echo "$count"
