# shellcheck shell=sh disable=SC2034 # the steps read these
# Where the steps of a check keep what they make, and how they end. Read by each of them; it does nothing by itself.
#
# A check compares two commits of the repository in whose folder it starts. Everything it is asked is in variables of
# the environment, so that no text of a change becomes a part of a script:
#
#   CHECK_COMMANDS      a command that ends on each line; {tree} is the folder of the build: base, then head
#   CHECK_SERVE         a server, with {tree} and {port}
#   CHECK_LOAD          the command that loads it, with {port}
#   CHECK_BUILD         a shell line that builds one tree, in its folder; empty where nothing is built
#   CHECK_HEAD          the commit that is judged (HEAD)
#   CHECK_BASE          the commit it is compared with; without it `sources` finds one
#   CHECK_TARGET        the commit that the change is to be merged into, as the event of the check names it
#   CHECK_MERGED        yes where the head is the merge of both that the host of the repository made
#   CHECK_FAIL_IF       a threshold on each line
#   CHECK_OPTIONS       an argument of `weir compare` on each line, such as --budget=2min
#   CHECK_INCONCLUSIVE  pass, or fail: what an answer that is not known does to the check (pass)
#   CHECK_NAME          distinguishes the comments of two checks (weir)
#   CHECK_LINK          an address for the last line of the comment
#   CHECK_WEIR          a weir program; without it that on the path, or else a release is fetched
#   CHECK_VERSION       the release to fetch (that of these files)
#   CHECK_RELEASES      the address below which releases lie, each in the folder v and its version
#   CHECK_WORK          the folder for all of it (.weir-check)
#
# `report` in that folder is what a reader needs: comment.md, code with the exit code, a JSON file and the answer of each
# command (1.json, 1.md) and the logs of the builds.

work=${CHECK_WORK:-.weir-check}
case $work in
/*) ;;
*) work=$PWD/$work ;;
esac
report=$work/report
name=${CHECK_NAME:-weir}
marker="<!-- weir-check $name -->"

# Exit codes that weir has no part in, with its meaning for them.
code_error=1
code_wrong_input=2
code_head_missing=13
code_base_missing=14

# Not echo, which changes backslashes in some shells.
say() { printf 'weir-check: %s\n' "$*"; }

fail() { # exit code, sentence
    say "$2" >&2
    exit "$1"
}

case $name in
*[!A-Za-z0-9._-]*) fail "$code_wrong_input" "the name may have letters, digits, dots, dashes and underscores" ;;
esac

# Most bytes of a comment. GitHub takes 65,536 characters, and no character has less than a byte.
comment_bytes_max=50000

# Lines of text of at most this many bytes, without a part of a character at their end.
shortened() { # bytes
    partial=$(printf '[\300-\377][\200-\277]*$')
    LC_ALL=C awk -v most="$1" -v partial="$partial" \
        'length($0) > most { $0 = substr($0, 1, most); sub(partial, ""); $0 = $0 "..." } { print }'
}

# An earlier step has answered: the others have nothing to do.
is_decided() { [ -e "$report/code" ]; }

# The first lines of every comment.
comment_head() {
    echo "$marker"
    if [ -e "$work/commits" ]; then
        read -r base_commit head_commit <"$work/commits"
        # shellcheck disable=SC2016 # these are marks of Markdown
        printf '### Weir: `%.10s` against `%.10s`\n\n' "$head_commit" "$base_commit"
    else
        printf '### Weir\n\n'
    fi
}

comment_tail() {
    if [ -n "${CHECK_LINK-}" ]; then
        printf '[This run, with its report](%s)\n' "$CHECK_LINK"
    fi
}

# The check is set up wrongly: the comment says how.
decide_wrong() { # sentence
    decide "$code_wrong_input" "the check is set up wrongly: $1" "$1" >&2
}

# The check ends without a comparison.
decide_without() { # exit code, sentence, file whose last lines explain it
    decide "$1" "not comparable: $2" "$2" "${3-}"
}

decide() { # exit code, line of the comment, sentence, file whose last lines explain it
    mkdir -p "$report"
    code=$1 line=$2 sentence=$3
    shift 3
    {
        comment_head
        printf '%s\n' "$line"
        if [ -s "${1-}" ]; then
            printf '\n```text\n'
            last_lines "$1"
            printf '```\n'
        fi
        echo
        comment_tail
    } >"$report/comment.md"
    echo "$code" >"$report/code"
    say "$sentence"
}

# As plain text: without colours and other control characters, and without what would end the block it stands in.
last_lines() { # file
    escape=$(printf '\033')
    tail -c 100000 "$1" | tail -n 20 | sed "s/$escape\[[0-9;]*[A-Za-z]//g" | tr '`' "'" |
        tr -d '\000-\010\013-\037\177' | shortened 300
}
