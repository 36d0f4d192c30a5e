# Says what the service in the folder $1 is doing: `none`, `running UID`, `exited CODE` or `lost`.
d=$1
if ! IFS=' ' read -r pid began 2>/dev/null <"$d/pid"; then
  echo none
  exit
fi
if IFS= read -r code 2>/dev/null <"$d/exit"; then
  echo "exited $code"
  exit
fi
line=
IFS= read -r line 2>/dev/null <"/proc/$pid/stat"
rest=${line##*) }
now=$(set -- $rest; shift 19 2>/dev/null && echo "$1")
case $rest in
'' | Z* | X*) ;;
*)
  if [ "$now" = "$began" ]; then
    while read -r key uid _; do
      [ "$key" = Uid: ] && break
    done <"/proc/$pid/status"
    echo "running $uid"
    exit
  fi
  ;;
esac
# It may have ended between the two looks.
if IFS= read -r code 2>/dev/null <"$d/exit"; then
  echo "exited $code"
else
  echo lost
fi
