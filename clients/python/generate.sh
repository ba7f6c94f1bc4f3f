#!/usr/bin/env bash
# Writes the stubs anew from ../../proto into the directory given, which holds the package.
set -euo pipefail
cd "$(dirname "$0")"

out=$1
mapfile -t protos < <(cd ../../proto && find sidekeeper -name '*.proto' | sort)
"$(command -v "${PYTHON:-python3}")" -m grpc_tools.protoc --proto_path=../../proto --python_out="$out" --pyi_out="$out" --grpc_python_out="$out" "${protos[@]}"
find "$out/sidekeeper" -mindepth 2 -type d -name v1 -exec touch {}/__init__.py {}/../__init__.py \;
# A proto without a service has no stubs.
find "$out/sidekeeper" -name '*_pb2_grpc.py' -exec grep -L 'class .*Stub' {} + | xargs --no-run-if-empty rm
