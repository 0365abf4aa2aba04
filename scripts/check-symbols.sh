#!/bin/sh
# Checks that every target object file given defines its kernel table and nothing else that another
# file could see: a second global or a weak symbol compiled for one target could end up being the
# copy that another target, or the caller, runs.
#
# Usage: check-symbols.sh scalar.cc.o avx2.cc.o ...
set -eu

if [ $# -eq 0 ]; then
  echo "usage: $0 OBJECT..." >&2
  exit 2
fi

status=0
for object in "$@"; do
  # Types of nm: U undefined; lower case local, but u (unique), v and w (weak).
  visible=$(nm -C "$object" | sed -n 's/^[0-9a-f ]*\([A-TV-Zuvw]\) \(.*\)$/\1 \2/p')
  if ! expr "$visible" : '[BDRG] shorthand::k[A-Za-z0-9]*Kernels$' >/dev/null; then
    echo "$object: exports more, or other, than its kernel table:" >&2
    printf '%s\n' "${visible:-nothing}" >&2
    status=1
  fi
done
exit $status
