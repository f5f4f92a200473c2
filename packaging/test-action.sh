#!/bin/sh
# What packaging/test-action runs in its container: makes the repository, and checks each change by the lines of the
# action's steps.
set -eu
repository=/tmp/repository
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org

commit() { # branch
    git add --all
    git commit --quiet --message "$1"
}

branch() { # name
    git switch --quiet --create "$1" main
}

git init --quiet --initial-branch main "$repository"
cd "$repository"
cat >counts.c <<'SOURCE'
#include <stdio.h>
#include "turns.h"

int main(void) {
    volatile unsigned long sum = 0;
    for (unsigned long turn = 0; turn < TURNS; turn++) sum += turn;
    puts("counted");
    return 0;
}
SOURCE
echo '#define TURNS 20000000ul' >turns.h
commit main
branch unchanged
echo words >README
commit unchanged
branch costlier
echo '#define TURNS 20600000ul' >turns.h
commit costlier
branch unbuilt
echo '#error "the change is broken"' >turns.h
commit unbuilt
branch failing
sed -i 's/return 0/return 7/' counts.c
commit failing

export GITHUB_ACTION_PATH=/weir/github GITHUB_REPOSITORY=some/thing
export CHECK_TARGET=main CHECK_BUILD='gcc -O1 -o counts counts.c' CHECK_COMMANDS='{tree}/counts'
CHECK_FAIL_IF='cpu ratio > 1.01'
CHECK_OPTIONS=--budget=$(cat /weir/budget)
export CHECK_FAIL_IF CHECK_OPTIONS
wrong=0
for change in unchanged:0 costlier:10 unbuilt:13 failing:12; do
    name=${change%:*} expected=${change#*:}
    export "CHECK_WORK=/runs/$name" "GITHUB_STEP_SUMMARY=/runs/$name.md" "GITHUB_OUTPUT=/runs/$name.outputs"
    git switch --quiet --detach "$name"
    code=0
    # The lines of the steps, as they stand in the action; a step that fails is the last.
    sed -n "s/^ *run: '\(.*\)'\$/\1/p" "$GITHUB_ACTION_PATH/action.yml" >/runs/steps
    bash --noprofile --norc -e -o pipefail /runs/steps >"/runs/$name.log" 2>&1 </dev/null || code=$?
    echo "==== $name: exit code $code, $expected is right"
    cat "$GITHUB_STEP_SUMMARY"
    [ "$code" = "$expected" ] || wrong=1
done
exit "$wrong"
