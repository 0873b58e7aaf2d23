#!/bin/sh
# Checks the models of this folder with spin, as checks.txt lists them:
#
#	check.sh [NAME...]     all of them, or those whose name contains a NAME
#
# A table on standard output; the status is 1 if anything came out otherwise
# than expected. The runs that show a fault are written out in words, one file
# each, into a folder that is named at the end. MODEL_OUT=DIR chooses it.
# Without spin it says how to get it, and fails only where CI is set.
set -u
here=$(cd "$(dirname "$0")" && pwd)

case "${CI:-}" in 1 | true) ci=1 ;; *) ci=0 ;; esac
missing=
command -v spin >/dev/null 2>&1 || missing="spin"
command -v gcc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
if [ -n "$missing" ]; then
  echo "model: skipped, the checks need: apt-get install -y $missing" >&2
  exit $ci
fi

out=${MODEL_OUT:-$(mktemp -d "${TMPDIR:-/tmp}/standbyd-model.XXXXXX")} || exit 1
mkdir -p "$out" || exit 1
limit=${MODEL_LIMIT:-300} # seconds for one check

# An option that begins with an if makes spin join the two, and an else of the
# inner one then waits for the options of the outer: states would be missed
# without a word.
joined() {
  spin -I $1 "$2" 2>/dev/null | tr -s ' \t\n' '   ' | grep -qE '::( atomic)?( \{)* (if|do) ::'
}

# check NAME MODEL EXPECT DEFINITIONS VERIFIER-FLAGS
check() {
  name=$1 model=$2 expect=$3 flags=$5
  defs=
  for d in $4; do defs="$defs -D$d"; done
  dir=$out/$name.d
  mkdir -p "$dir" && cp "$here/$model" "$dir/" && cd "$dir" || exit 1
  # Liveness needs the two searches and the room for fairness that safety does without.
  case " $flags " in *" -a "*) cc="-DNFAIR=4" ;; *) cc="-DSAFETY -DNOFAIR" ;; esac
  opt=-O2
  [ "$expect" = fault ] && opt=-O0
  got=none states=? secs=?
  if nice -n 19 spin $defs -a "$model" >spin.log 2>&1 &&
    nice -n 19 gcc $opt -w -DVECTORSZ=2048 -DMEMLIM=2000 -DCOLLAPSE $cc -o pan pan.c 2>>spin.log; then
    began=$(cat /proc/uptime 2>/dev/null | cut -d. -f1)
    ( ulimit -t "$limit"; exec nice -n 19 ./pan -m400000 -w21 $flags >pan.log 2>&1 )
    states=$(awk '/states, stored/ { print $1; exit }' pan.log)
    secs=$(awk '/^pan: elapsed time/ { print $4; exit }' pan.log)
    errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log | head -1)
    case "${errors:-none}" in
    none) got=stopped ;;
    0) got=ok ;;
    *) got=fault ;;
    esac
    # An exhaustive search that was cut off proves nothing.
    if [ $got = ok ] && grep -qE 'max search depth too small|out of memory|MEMLIM|Search not completed' pan.log; then got=cut; fi
    [ $got = ok ] && joined "$defs" "$model" && got=joined
  fi
  note=
  if [ "$got" = fault ]; then
    note=$(sed -n 's/^pan:1: //p' pan.log | head -1 | cut -c1-60)
    trail=$(ls ./*.trail 2>/dev/null | head -1)
    [ -n "$trail" ] && spin $defs -T -t -k "$trail" "$model" 2>/dev/null | grep -vE '^(spin:|ltl |Never claim |#proc|[0-9]+ processes|[[:space:]]*[0-9]+:|[[:space:]]+[A-Za-z]+(\[[0-9]+\])? = )' >"$out/$name.txt"
  fi
  # What was never reached was not checked.
  if [ "$got" = ok ]; then
    unreached=$(grep -E '^[[:space:]]+[a-z]+\.pml:[0-9]+, state' pan.log | grep -vcE '"-end-"|"false"|"\(0\)"|"printf|"assert\(0\)"')
    [ "$unreached" -gt 0 ] && note="$unreached statements not reached"
  fi
  verdict=
  if [ "$got" != "$expect" ]; then
    verdict="  UNEXPECTED"
    bad=$((bad + 1))
    note="$note see $dir"
  fi
  printf '%-30s %-7s %-7s %10s %7s%s  %s\n' "$name" "$expect" "$got" "${states:-?}" "${secs:-?}" "$verdict" "$note"
  cd "$here" || exit 1
  [ -z "$verdict" ] && rm -rf "$dir"
}

bad=0 all=0
printf '%-30s %-7s %-7s %10s %7s\n' check expect got states seconds
while read -r name model expect rest; do
  case "$name" in '' | '#'*) continue ;; esac
  if [ $# -gt 0 ]; then
    wanted=0
    for pattern; do case "$name" in *"$pattern"*) wanted=1 ;; esac; done
    [ $wanted = 1 ] || continue
  fi
  defs= flags=
  for word in $rest; do
    case "$word" in -*) flags="$flags $word" ;; *) defs="$defs $word" ;; esac
  done
  all=$((all + 1))
  check "$name" "$model" "$expect" "$defs" "$flags"
done <"$here/checks.txt"

echo "$all checks, $bad unexpected; the faults in words: $out"
[ $bad = 0 ]
