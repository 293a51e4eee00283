package tool

import (
	"regexp"
	"strings"
)

// subcommands are programs whose first argument says what they do.
var subcommands = words(`apt apt-get brew bundle cargo cd composer conda docker dotnet flutter gem gh git gmake go
	gradle helm hg jj just kubectl make mix mvn nix npm pip pip3 pixi pnpm podman poetry pushd rustup svn systemctl
	task terraform uv yarn zig`)

// subsubcommands are first arguments of which the next word matters too.
var subsubcommands = set("docker compose", "gh api", "gh issue", "gh pr", "gh release", "gh repo", "gh run",
	"git bisect", "git config", "git remote", "git stash", "git submodule", "git worktree", "go env", "go mod",
	"go run", "go tool", "npm config", "npm run", "podman compose", "pnpm config", "pnpm run", "uv pip", "yarn config",
	"yarn run")

// runners are subcommands that run any other command.
var runners = set("bundle exec", "conda run", "docker compose exec", "docker compose run", "docker exec", "docker run",
	"git bisect run", "git filter-branch", "kubectl exec", "kubectl run", "nix develop", "nix run", "nix shell",
	"npm exec", "pixi run", "pnpm dlx", "pnpm exec", "podman compose exec", "podman compose run", "podman exec",
	"podman run", "poetry run", "uv run", "yarn dlx", "yarn exec")

// interpreters run a program that is named by their first argument.
var interpreters = words(`bun deno java julia lua node osascript perl php pwsh powershell python python2 python3
	pypy3 Rscript ruby tclsh`)

// hiding are commands that run what their arguments or their input say, or that
// change what later words mean. What they do cannot be told from their name.
var hiding = words(`. alias ash awk bash bind builtin bunx busybox chroot cmd command compgen complete coproc csh dash
	declare disown doas ed emacs enable env eval ex exec expect export fc fish flock gawk gdb getopts hash history
	ionice jobs ksh let lldb local ltrace mapfile mawk nawk nc ncat nice nohup npx nsenter parallel pkexec pnpx read
	readarray readonly rsh runuser screen script set setarch setpriv setsid sh shopt source ssh stdbuf strace su sudo
	systemd-run taskset tcsh test time timeout tmux toybox trap typeset unalias unbuffer unset unshare uvx vi vim watch
	xargs zsh`)

// hidingArguments make an otherwise plain command run another one, write a file
// or delete. A value may follow after "=".
var hidingArguments = words(`-delete -exec -execdir -fls -fprint -fprint0 -fprintf -ok -okdir -toolexec -vettool
	--checkpoint-action --compress-program --config-env --eval --exec --exec-path --ext-diff --extcmd
	--open-files-in-pager --output --pre --receive-pack --rsh --to-command --toolexec --upload-pack
	--use-compress-program foreach`)

func words(list string) map[string]bool { return set(strings.Fields(list)...) }

func set(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, w := range list {
		m[w] = true
	}
	return m
}

var (
	// plainName is a word that no shell changes and that is no option.
	plainName = regexp.MustCompile(`^[A-Za-z0-9_./+:@%,][A-Za-z0-9_./+:@%,-]*$`)
	// loopName is a variable that a loop may set: one in capitals, PATH say, could
	// change what the commands in the loop do.
	loopName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,15}$`)
	// makeVariable sets a variable of a makefile.
	makeVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*[:+?!]*=`)
)
