package tool

import (
	"slices"
	"strings"
	"testing"
)

func TestCommandScopes(t *testing.T) {
	for command, want := range map[string]string{
		"git status":                                      "git status",
		"git status; rm x":                                "git status, rm",
		"git status\nrm x":                                "git status, rm",
		"git status && git status -s":                     "git status",
		"ls -la | head -5 && go test ./...":               "ls, head, go test",
		"for x in a *.go b; do cat $x; done":              "cat",
		"if test_it; then ls; elif x; then y; else z; fi": "test_it, ls, x, y, z",
		"while true; do date; done":                       "true, date",
		"(ls; cd sub && make test) 2>&1":                  "ls, cd sub, make test",
		"{ ls; } 2>/dev/null":                             "ls",
		"echo hi > /dev/null":                             "echo",
		"cat < in <<< $HOME":                              "cat",
		"cat <<'EOF'\n$(rm)\nEOF":                         "cat",
		"wc -l *.go | sort -n":                            "wc, sort",
		"python -m pytest -q x":                           "python -m pytest",
		"python3 tool.py -c x":                            "python3 tool.py",
		`"git" 'status'`:                                  "git status",
		"git stat\\\nus":                                  "git status",
		`g\it status`:                                     "git status",
		"sleep 1 & wait":                                  "sleep, wait",
		"! grep -rn \"foo\\|bar\" \"$HOME/x y\"":          "grep",
		"npm run build -- -x":                             "npm run build",
		"docker compose up -d":                            "docker compose up",
		"go mod tidy":                                     "go mod tidy",
		"go env":                                          "go env",
		"./run.sh a":                                      "./run.sh",
		"/usr/bin/git status":                             "/usr/bin/git status",
		"find . \\( -name a -o -name '*.go' \\)":          "find",
		"make":                                            "make",
		"printf '%s' x":                                   "printf",
		"git log --format=%H # a comment":                 "git log",
		"a | b | c | d | e | f | g | h":                   "a, b, c, d, e, f, g, h",
	} {
		if got := strings.Join(commandScopes(command), ", "); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

func TestHiddenCommandsHaveNoScope(t *testing.T) {
	for _, command := range []string{
		"", "# nothing", "if", "git status $(rm x)", "git status `rm x`", "echo \"$(rm x)\"", "cat <(rm x)", "ls > out",
		"ls >> out", "ls &> out", "ls >| out", "ls <> out", "ls 2> out", "ls > $x", "ls >& out", "exec {fd}> out", "> out",
		"$x status", "${x} y", "\"$x\" y", "g$x status", "git $x", "git \"$x\"", "git -c alias.x=!rm x", "git -C d status",
		"a=b c", "PATH=. git status", "a=b", "export a=b", "declare a", "local a", "eval ls", "sh -c ls", "/bin/sh x",
		"bash x", "xargs rm", "ls | xargs rm", "sudo ls", "env ls", "command ls", "builtin ls", "exec ls", ". x", "source x",
		"nohup ls", "time ls", "timeout 1 ls", "trap ls EXIT", "alias ls=rm", "set -x", "unset x", "read x", "test -v x",
		"[ -f x ]", "[[ -f x ]]", "((x++))", "let x", "echo $((x))", "echo ${x:-y}", "echo ${x@P}", "echo ${!x}",
		"echo ${x[0]}", "echo ${x/a/b}", "f() { ls; }; f", "function git { rm; }; git status", "case x in x) ls;; esac",
		"coproc ls", "select x in a; do ls; done", "for ((;;)); do ls; done", "for PATH in .; do git status; done",
		"for x in -delete; do find . $x; done", "for x in 'a -delete'; do find . $x; done", "for x in *; do find . $x; done",
		"for x in $(ls); do cat $x; done", "for x in $y; do find . $x; done", "for x; do cat $x; done",
		"find . -exec rm {} +", "find . -delete", "find . -ex\\ec rm {} +", "find . -e'xec' rm {} +", "find . $'-exec' rm",
		"find . -exec$x rm", "find . $x-exec rm", "find . -{exec,x} rm", "find . *", "find . -ex*", "find . -{a..c}",
		"go test -exec=rm x", "go build -toolexec rm", "tar --to-command=rm -xf x", "sort --compress-program=rm x",
		"git fetch --upload-pack=rm", "rg --pre rm x", "git submodule foreach rm", "git bisect run rm", "git grep --open-files-in-pager=rm x",
		"python -c x", "python", "python -", "node -e x", "perl -pe x y", "awk 1 x", "docker run x", "docker exec x rm",
		"docker compose exec x rm", "npm exec rm", "npx rm", "poetry run rm", "kubectl exec x -- rm", "bundle exec rm",
		"go env -w A=b", "make CC=rm", "make test CC=rm", "make -j4", "make $x", "printf -v x y", "ssh h rm", "cd -",
		"cd ~/x && ls", "{git,status}", "l? x", "/bin/l*", "~/x", "a\r\nb", "-x", "a | b | c | d | e | f | g | h | i",
		"ls " + strings.Repeat("x", maxScopedCommand),
	} {
		if got := commandScopes(command); got != nil {
			t.Errorf("%.60q: %q", command, got)
		}
	}
}

// FuzzCommandScopes: a command behind another is never covered by the scopes of
// the first, and nothing that hides is a scope.
func FuzzCommandScopes(f *testing.F) {
	for _, s := range []string{"git status", "ls | wc -l", "for x in a b; do cat $x; done", "cat <<EOF\nx\nEOF", "a && (b; c)", "echo \"$x\" 'y'"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		scopes := commandScopes(command)
		for _, s := range scopes {
			first, _, _ := strings.Cut(s, " ")
			if hiding[first] || strings.ContainsAny(s, "$`\\'\"\n;|&<>(){}*?") || s == "" {
				t.Errorf("%q: %q", command, scopes)
			}
		}
		if len(scopes) > maxScopes || (scopes != nil && len(scopes) == 0) {
			t.Errorf("%q: %q", command, scopes)
		}
		if both := commandScopes(command + "\nzz-other x"); both != nil && !slices.Contains(both, "zz-other") &&
			!strings.Contains(command, "<<") && !strings.HasSuffix(command, "\\") && !strings.Contains(command, "#") {
			t.Errorf("%q: the command behind it is covered: %q", command, both)
		}
	})
}
