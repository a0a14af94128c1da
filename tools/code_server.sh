#!/usr/bin/env bash
# code_server.sh FOLDER: puts a real VS Code (code-server) that runs without its installer into FOLDER, for tests/vscode. Downloads
# about 300 MB through npm and compiles its native modules; done once, and nothing is done where it is there.
set -euo pipefail

version=4.100.3 # the newest one for node 20
folder="$1"
mkdir -p "$folder"
cd "$folder"
home="$PWD"
[ -e ready-$version ] && exit 0

npm install --ignore-scripts --no-audit --no-fund --loglevel=error code-server@$version node-gyp@12.4.0
code="$PWD/node_modules/code-server/lib/vscode"
ln -sfn node_modules "$code/node_modules.asar"
for place in "$code" "$code/extensions"; do
  (cd "$place" && npm install --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error)
done

headers="$(dirname "$(dirname "$(realpath "$(command -v node)")")")"
[ -e "$headers/include/node/node.h" ] && own_headers=(--nodedir "$headers") || own_headers=()
for module in @vscode/spdlog node-pty native-watchdog @parcel/watcher kerberos; do
  (cd "$code/node_modules/$module" && node "$home/node_modules/node-gyp/bin/node-gyp.js" rebuild "${own_headers[@]}" >build.log 2>&1) \
    || { echo "code_server.sh: $module does not compile; see $code/node_modules/$module/build.log" >&2; exit 1; }
done
mkdir -p "$code/node_modules/@vscode/ripgrep/bin"
ln -sfn "$(command -v rg)" "$code/node_modules/@vscode/ripgrep/bin/rg"

# Hashes passwords, which the tests' server has none of; it would be one more thing to compile.
rm -rf node_modules/argon2
mkdir node_modules/argon2
echo '{ "name": "argon2", "version": "0.0.0", "main": "none.js" }' >node_modules/argon2/package.json
echo 'module.exports = { hash: async () => "", verify: async () => false };' >node_modules/argon2/none.js
touch ready-$version
