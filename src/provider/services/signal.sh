# Sends the signal $2 to every process of the service $1, and prints how many there are.
count=0
for file in /proc/[0-9]*/environ; do
  pid=${file#/proc/}
  pid=${pid%/environ}
  [ "$pid" = $$ ] && continue
  if tr '\000' '\n' 2>/dev/null <"$file" | grep -qxF "GYM_SANDBOX_SERVICE=$1"; then
    kill "-$2" "$pid" 2>/dev/null && count=$((count + 1))
  fi
done 2>/dev/null
echo "$count"
