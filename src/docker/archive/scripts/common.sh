PATH=$PATH:/usr/local/bin:/usr/bin:/bin
LC_ALL=C
export PATH LC_ALL
# Makes a directory and its missing parents, owned by $owner.
make_directory() {
  if [ -z "$1" ] || [ -d "$1" ]; then return 0; fi
  if [ -e "$1" ] || [ -L "$1" ]; then exit 93; fi
  make_directory "${1%/*}"
  mkdir -m 755 -- "$1" || exit 98
  if [ -n "$owner" ]; then chown "$owner" "$1" || exit 98; fi
}
