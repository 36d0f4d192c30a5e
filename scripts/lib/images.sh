# shellcheck shell=bash
# Owns: which test images there are, and making those that the engine lacks.
# Must not know: how the engine was found.
#
# A folder images/NAME is the recipe of gym-sandbox/NAME:test. It holds either a Dockerfile (built on another
# test image by the engine's classic builder, without a network), or build.sh (makes the root file system as a tar)
# and `changes` (Dockerfile lines for the import). No registry is asked.

# Parents before children.
IMAGES=(busybox entrypoint user health unhealthy volume exit static debian debian-user)

image_parent() {
    [[ ! -e $SCRIPTS/images/$1/Dockerfile ]] || sed -n 's|^FROM gym-sandbox/\(.*\):test$|\1|p' "$SCRIPTS/images/$1/Dockerfile"
}

# A hash of all that the image is made from, its parents' recipes and the machine's architecture among it.
image_recipe() {
    local parent
    parent=$(image_parent "$1")
    {
        # Raise the number when the way of building changes.
        printf '1 %s\n' "$(uname -m)"
        [[ -z $parent ]] || image_recipe "$parent"
        (cd "$SCRIPTS/images/$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
    } | sha256sum | cut -c1-16
}

# image_is_there NAME RECIPE
image_is_there() {
    local found
    found=$(engine_list /images/json '' \
        "{\"reference\":[\"gym-sandbox/$1:test\"],\"label\":[\"gym-sandbox.image=test\",\"gym-sandbox.recipe=$2\"]}") || return 1
    [[ $found == *'"Id"'* ]]
}

images_missing() {
    local name
    for name in "${IMAGES[@]}"; do
        image_is_there "$name" "$(image_recipe "$name")" || printf '%s\n' "$name"
    done
}

image_import() {
    local name=$1 recipe=$2 root line
    local query="fromSrc=-&repo=gym-sandbox/$name&tag=test"
    root=$CACHE/$name-$recipe.tar
    if [[ ! -e $root ]]; then
        # Under another name until it is whole: a run that was cut short leaves nothing to be taken for it.
        bash "$SCRIPTS/images/$name/build.sh" "$root.part" || return 1
        rm -f "$CACHE/$name"-*.tar
        mv "$root.part" "$root"
    fi
    while read -r line; do
        [[ -z $line ]] || query+="&changes=$(url_encode "$line")"
    done <"$SCRIPTS/images/$name/changes"
    query+="&changes=$(url_encode "LABEL gym-sandbox.image=test gym-sandbox.recipe=$recipe")"
    engine_api POST "/images/create?$query" --max-time 300 --header 'Content-Type: application/x-tar' --upload-file "$root"
}

image_build() {
    local name=$1 recipe=$2 labels
    labels="{\"gym-sandbox.image\":\"test\",\"gym-sandbox.recipe\":\"$recipe\"}"
    tar -C "$SCRIPTS/images/$name" --owner=0 --group=0 --numeric-owner -cf "$CACHE/$name-context.tar" . || return 1
    engine_api POST "/build?t=gym-sandbox/$name:test&networkmode=none&rm=1&forcerm=1&labels=$(url_encode "$labels")" \
        --max-time 300 --header 'Content-Type: application/x-tar' --upload-file "$CACHE/$name-context.tar"
}

# The answers to import and build are 200 also when the work then fails: the text is shown when the image is not there.
image_make() {
    local name=$1 recipe started=$SECONDS answer
    recipe=$(image_recipe "$name")
    ! image_is_there "$name" "$recipe" || return 0
    say "making gym-sandbox/$name:test"
    if [[ -e $SCRIPTS/images/$name/Dockerfile ]]; then
        answer=$(image_build "$name" "$recipe") || die "gym-sandbox/$name:test can't be built"
    else
        answer=$(image_import "$name" "$recipe") || die "gym-sandbox/$name:test can't be made"
    fi
    image_is_there "$name" "$recipe" || die "gym-sandbox/$name:test can't be made, the engine says:" "$answer"
    say "made gym-sandbox/$name:test in $((SECONDS - started)) s"
}

images_make() {
    local name
    mkdir -p "$CACHE"
    for name in "${IMAGES[@]}"; do image_make "$name"; done
    # What a new recipe has replaced. Not the youngest, which may be a step of a build that runs right now.
    local old='{"dangling":["true"],"label":["gym-sandbox.image=test"],"until":["30m"]}'
    engine_api POST "/images/prune?filters=$(url_encode "$old")" --max-time 120 >/dev/null || true
}
