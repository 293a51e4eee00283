package tool

import (
	"strings"
)

// subcommands are programs whose first argument says what they do.
var subcommands = words(`apt apt-get brew bundle cargo cd composer conda docker dotnet flutter gem gh git gmake go
	gradle helm hg jj just kubectl make mix mvn nix npm pip pip3 pixi pnpm podman poetry pushd rustup svn systemctl
	task terraform uv yarn zig`)

// runners are subcommands that run any other command.
var runners = set("bundle exec", "conda run", "docker compose exec", "docker compose run", "docker exec", "docker run",
	"git bisect run", "git difftool", "git filter-branch", "git mergetool", "git submodule foreach", "kubectl exec", "kubectl run", "nix develop", "nix run", "nix shell",
	"npm exec", "pixi run", "pnpm dlx", "pnpm exec", "podman compose exec", "podman compose run", "podman exec",
	"podman run", "poetry run", "uv run", "yarn dlx", "yarn exec")

// interpreters run a program that is named by their first argument.
var interpreters = words(`bun deno java julia lua node osascript perl php pwsh powershell python python2 python3
	pypy3 Rscript ruby tclsh`)

// hiding are commands that run what their arguments or their input say, or that
// change what later words mean. What they do cannot be told from their name.
var hiding = words(`. alias ash at awk bash batch bind builtin bunx busybox chroot cmd command compgen complete coproc crontab csh dash
	dc declare disown doas duckdb ed emacs enable env eval ex exec expect export fc fish flock ftp gawk gdb getopts hash history
	ionice jobs ksh less let lldb local ltrace m4 mapfile mariadb mawk more most mysql nawk nc ncat nice nohup npx nsenter parallel pkexec pnpx psql read
	readarray readonly rsh runuser screen script set setarch setpriv setsid sh shopt sftp source sqlite sqlite3 ssh stdbuf strace su sudo
	systemd-run taskset tcsh telnet test time timeout tmux toybox trap typeset unalias unbuffer unset unshare uvx vi vim watch
	xargs zsh`)

// hidingArguments make a command that is not known run another one, write a file or
// delete. A value may follow after "=".
var hidingArguments = words(`-delete -exec -execdir -fls -fprint -ok -okdir -toolexec -vettool -wrapper
	--checkpoint-action --command --compress-program --config --config-env --eval --exec --ext-diff --extcmd --filter
	--open-files-in-pager --output --pager --plugin --pre --receive-pack --remote --rsh --script-shell --shell --to-command --toolexec
	--upload-pack --use-askpass --use-compress-program foreach`)

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
	plainName = pattern(`^[A-Za-z0-9_./+:@%,][A-Za-z0-9_./+:@%,-]*$`)
	// exactWord is a word that no shell changes.
	exactWord = pattern(`^[A-Za-z0-9_./+:@%,=-]+$`)
	// sedScript is a script of sed that prints, deletes and replaces, and neither
	// runs nor writes anything.
	sedScript = pattern(`^(([0-9]+|\$)(,([0-9]+|\$))?)?([pdq=]|s/([^/\\\n]|\\[^\n])*/([^/\\\n]|\\[^\n])*/[gpI0-9]*)(;(([0-9]+|\$)(,([0-9]+|\$))?)?[pdq=])*$`)
	// loopName is a variable that a loop may set: one in capitals, PATH say, could
	// change what the commands in the loop do.
	loopName = pattern(`^[a-z][a-z0-9_]{0,15}$`)
	// makeVariable sets a variable of a makefile.
	makeVariable = pattern(`^[A-Za-z_][A-Za-z0-9_.]*[:+?!]*=`)
)
