# shellcheck shell=bash
# Not a kind: programs for checks, built from the modules in dev/tools. Each is stored under its
# version, so that cleaning Go's cache does not cause a rebuild; "dev/services install NAME" creates
# a link to it in .services/bin.

# go_tool NAME FOLDER MODULE PACKAGE: the version is that of MODULE in dev/tools/FOLDER.
go_tool() {
  local version target
  version=$(sed -n "s,^\\t\\?\\(require \\)\\?$3 \\(v[^ ]*\\).*,\\2,p" "$ROOT/dev/tools/$2/go.mod")
  [[ -n $version ]] || die "dev/tools/$2/go.mod does not require $3"
  target=$BASE/programs/$1-$version
  if [[ ! -x $target ]]; then
    command -v go >/dev/null || die "go is needed to build $1"
    say "building $1 $version"
    mkdir -p "$BASE/programs"
    GOWORK=off go -C "$ROOT/dev/tools/$2" build -o "$target.part" "$4" >&2 || die "could not build $1"
    mv "$target.part" "$target"
  fi
  mkdir -p "$BASE/bin"
  ln -sfn "$target" "$BASE/bin/$1"
}

fetch_staticcheck() { go_tool staticcheck . honnef.co/go/tools honnef.co/go/tools/cmd/staticcheck; }
fetch_actionlint() { go_tool actionlint . github.com/rhysd/actionlint github.com/rhysd/actionlint/cmd/actionlint; }
fetch_kubeconform() { go_tool kubeconform kube github.com/yannh/kubeconform github.com/yannh/kubeconform/cmd/kubeconform; }
fetch_helm() { go_tool helm kube helm.sh/helm/v4 helm.sh/helm/v4/cmd/helm; }
fetch_golangci_lint() {
  go_tool golangci-lint golangci-lint github.com/golangci/golangci-lint/v2 github.com/golangci/golangci-lint/v2/cmd/golangci-lint
}
