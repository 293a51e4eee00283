package tool

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCommandScopes(t *testing.T) {
	for command, want := range map[string]string{
		"git status":                                         "git status",
		"git status; rm x":                                   "git status, rm",
		"git status\nrm x":                                   "git status, rm",
		"git status && git status -s":                        "git status",
		"ls -la | head -5 && go test ./...":                  "ls, head, go test",
		"for x in a *.go b; do cat $x; done":                 "cat",
		"if test_it; then ls; elif x; then y -v; else z; fi": "test_it, ls, x, y -v, z",
		"while true; do date; done":                          "true, date",
		"(ls; cd sub && make test) 2>&1":                     "ls, cd sub, make test",
		"{ ls; } 2>/dev/null":                                "ls",
		"echo hi > /dev/null":                                "echo",
		"cat < in <<< $HOME":                                 "cat",
		"cat <<'EOF'\n$(rm)\nEOF":                            "cat",
		"wc -l *.go | sort -n":                               "wc, sort",
		"python -m pytest -q x":                              "python -m pytest",
		"python3 tool.py -c x":                               "python3 tool.py -c x",
		`"git" 'status'`:                                     "git status",
		"git stat\\\nus":                                     "git status",
		`g\it status`:                                        "git status",
		"sleep 1 & wait":                                     "sleep, wait",
		"! grep -rn \"foo\\|bar\" \"$HOME/x y\"":             "grep",
		"npm run build":                                      "npm run build",
		"docker compose up -d":                               "docker compose up -d",
		"go mod tidy":                                        "go mod tidy",
		"go env":                                             "go env",
		"./run.sh a":                                         "./run.sh a",
		"/usr/bin/git status":                                "/usr/bin/git status",
		"find . \\( -name a -o -name '*.go' \\)":             "find",
		"make":                                               "make",
		"printf '%s' x":                                      "printf",
		"make -j4 test":                                      "make test",
		"make test deploy":                                   "make test deploy",
		"mytool --verbose -x a=b":                            "mytool --verbose -x a=b",
		"./git status -s":                                    "./git status -s",
		"git log -5 --oneline -- a b | head -20":             "git log, head",
		"git diff --stat HEAD~1":                             "git diff",
		"git commit -qm 'fix: a $(b)' && git push -u origin x": "git commit, git push",
		"go test -race -count=1 -run 'A|B' ./...":              "go test",
		"go build ./... && go vet ./...":                       "go build, go vet",
		"grep -rn x . --include=*.go":                          "grep",
		"sed -n '10,20p;$p' f | sed 's/a/b/g'":                 "sed",
		"tar xzf a.tgz && tar -tf b.tar":                       "tar",
		"find . -type f -mtime -7 -size +10 -name '*.go'":      "find",
		"sort -t, -k2,2n f | uniq -c":                          "sort, uniq",
		"rg -n --glob '*.go' x":                                "rg",
		"cargo test --release":                                 "cargo test",
		"git log --format=%H # a comment":                      "git log",
		"a; b; c; d; e; f; g; h":                               "a, b, c, d, e, f, g, h",
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
		"go env -w A=b", "make CC=rm", "make test CC=rm", "make $x", "printf -v x y", "ssh h rm", "cd -",
		"cd ~/x && ls", "{git,status}", "l? x", "/bin/l*", "~/x", "a\r\nb", "-x", "a; b; c; d; e; f; g; h; i",
		"ls " + strings.Repeat("x", maxScopedCommand),
	} {
		if got := commandScopes(command); got != nil {
			t.Errorf("%.60q: %q", command, got)
		}
	}
}

// TestHidingOptions: an option that runs another program or writes a file keeps a
// command from having a scope, in every way in which its program takes it: whole,
// abbreviated, in one letter, in a bundle, or in a word of a language.
func TestHidingOptions(t *testing.T) {
	for _, command := range []string{
		`tar -I 'sh -c "touch /tmp/x"' -xf a.tar`, `tar -Ievil -xf a`, `tar -xIevil -f a`, `tar xfI a evil`, `tar xIf evil a`, `tar -F evil -xf a`,
		`tar --use-compress-program=evil -xf a`, `tar --use-compress-prog=evil -xf a`, `tar --use-compress-prog evil -xf a`, `tar --us=evil -xf a`,
		`tar --to-command=evil -xf a`, `tar --to-comm=evil -xf a`, `tar xf a --checkpoint=1 --checkpoint-act=exec=evil`, `tar --info-script=evil -cf a b`,
		`tar --new-vol=evil -cf a b`, `tar --rsh-comm=evil -xf h:a`, `tar -xf host:a`, `tar -T list -cf a`, `tar xf a *`,
		`git grep -Oevil x`, `git grep -O evil x`, `git grep --open-files=evil x`, `git grep -nOevil x`, `git rebase -x evil HEAD~1`,
		`git rebase --ex=evil HEAD~1`, `git rebase -i x`, `git difftool -x evil`, `git difftool -yxevil`, `git difftool --extc=evil`, `git mergetool`,
		`git clone -u evil a b`, `git clone --upload-pa=evil a b`, `git clone -c core.fsmonitor=evil a b`, `git clone --template=x a b`,
		`git fetch --upload-pac=evil`, `git fetch --upload-pack evil`, `git pull --upload-p=evil`, `git push --receive-pa=evil`, `git push --exec=evil`,
		`git diff --output=x`, `git diff --outpu=x`, `git diff --output x`, `git log --outp=x`, `git show --ou=x`, `git diff --ext-di`, `git log -Oevil`,
		`git -c a=b status`, `git --exec-path=x status`, `git archive --exec=evil x`, `git archive --rem=evil x`, `git diff *`, `git log $x`,
		`git submodule foreach evil`, `git commit -e`, `git add -p`, `git blame --contents=x y`, `git branch --edit-desc`, `git status --unknown`,
		`split --filter='sh evil' f`, `split --filter=evil f`, `split --filt=evil f`,
		`sed -n '1e touch x' f`, `sed '1e' f`, `sed e f`, `sed 'w f' g`, `sed 'w /etc/x' f`, `sed 's/a/b/e' f`, `sed 's/a/b/w x' f`, `sed 's/a/b/ge' f`,
		`sed -e '1e x' f`, `sed -ne 1e f`, `sed -f x f`, `sed -i s/a/b/ f`, `sed --in-pl s/a/b/ f`, `sed --expr=e f`, `sed 's,a,b,e' f`, `sed '1p;e' f`, `sed -n "$x" f`,
		`rsync -e 'sh evil' a b:c`, `rsync -e evil a b:c`, `rsync -ave evil a b:c`, `rsync --rsh=evil a b:c`, `rsync --rs=evil a b:c`, `rsync --rsync-path=evil a b:c`,
		`sort -o x y`, `sort -ox y`, `sort -uo x y`, `sort --output=x y`, `sort --outp=x y`, `sort --compress-prog=evil y`, `sort --compress-program evil y`,
		`sort --files0-from=x`, `sort -T x y`, `uniq a b`, `rg --pre evil x`, `rg --pre=evil x`, `rg --pr evil x`, `rg --hostname-bin evil x`, `fd x -x evil`,
		`fd -X evil`, `fd --exec evil`, `fd --exec-b evil`, `scp -S evil a b:`, `scp -oProxyCommand=evil a b:`, `scp -rS evil a b:`, `man -P evil ls`,
		`man --pag=evil ls`, `man -Hevil ls`, `zip a b -TT evil`, `zip -T -TT evil a b`, `zip -rT a b --unzip-command evil`, `gcc -wrapper evil x`, `gcc -B. x`,
		`gcc -fplugin=x y`, `gcc @x`, `cc -specs=x y`, `clang -fpass-plugin=x y`, `rustc -C linker=evil x`, `rustc -Clinker=evil x`, `javac -J-x y`,
		`cargo test --config 'target.x.runner="evil"'`, `cargo --config x test`, `cargo test --conf=x`, `cargo build --manifest-path=x`, `cargo test -- --x`,
		`npm run --script-shell=evil build`, `npm test --script-shell=evil`, `npm test --script-sh evil`, `npm --script-shell=evil test`, `npm run build -- -x`,
		`npm run build --node-options=x`, `pytest -p evil`, `pytest -pevil`, `pytest -c x`, `pytest @x`, `python -m pytest -p evil`, `python -m pytest --pdbcls=x:y`,
		`go test -exec=evil ./...`, `go test --exec=evil ./...`, `go test -exec evil ./...`, `go build --toolexec=evil`, `go build -toolexec evil`,
		`go vet -vettool=evil`, `go test -o x`, `go test -coverprofile=x`, `go build -ldflags=-extld=evil`, `go build -overlay=x`, `go build -C x`, `go env -w A=b`,
		`go test ./... -args -x`, `gofmt -w x`, `make -f evil`, `make --file=evil`, `make --fil=evil`, `make -C dir`, `make --eval=x`, `make --ev=x`, `make -kfevil`,
		`make SHELL=evil`, `make -j4 CC=evil`, `find . -fprint x`, `find . -fprintf x y`, `find . -ok evil`, `find . -files0-from x`, `find * -name x`,
		`curl -o x y`, `curl --outp x y`, `curl -K x`, `curl -sSo x y`, `curl --conf x`, `wget --use-askpass=evil x`, `wget --use-ask=evil x`, `wget -O x y`,
		`mysql -e '\! evil'`, `mysql x`, `sqlite3 a '.shell evil'`, `sqlite3 a .shell`, `echo '.shell evil' | sqlite3 a`, `psql -c '\! evil'`, `psql x < y`,
		`less +!evil f`, `more f`, `at now`, `crontab x`, `ctags --opt=x`, `ctags --options=x`, `tree -o x`, `tree --outp=x`, `file -C -m x`,
		`echo evil | mytool`, `mytool < x`, `mytool <<< x`, "mytool <<EOF\nx\nEOF", `echo x | (mytool)`, `echo x | while true; do mytool; done`,
		`mytool --exec=evil`, `mytool --ex evil`, `mytool --pre evil`, `mytool --outp=x`, `mytool --output-file=x`, `mytool 'a b'`, `mytool $x`, `mytool *`,
		`echo --output=x; git log $_`, `echo -v; printf $_ 'a[x]'`, `./sort -o x y '$(z)'`,
	} {
		if got := commandScopes(command); got != nil {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// TestScopeShowsTheOptions: whatever the options of a command are, its scope is a
// name of the table and they are known, or it shows all words.
func TestScopeShowsTheOptions(t *testing.T) {
	words := rapid.SampledFrom([]string{"a", "./x", "-", "--", "-x", "-o", "-I", "-exec", "--exec", "--output=x", "--to-comm=x", "-n5", "--unknown", "x=y", "@x"})
	var names []string
	for name := range harmless() {
		names = append(names, name)
	}
	slices.Sort(names)
	names = append(names, "mytool", "./git", "/opt/ls", "kubectl get", "git stash pop", "docker ps", "node x.js")
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(names).Draw(rt, "name")
		command := strings.Join(append([]string{name}, rapid.SliceOfN(words, 0, 4).Draw(rt, "words")...), " ")
		scopes := commandScopes(command)
		if scopes == nil || scopes[0] == command {
			return
		}
		o := harmless()[name]
		if o == nil || !strings.HasPrefix(scopes[0], name) {
			rt.Fatalf("%s: %q", command, scopes)
		}
		for _, w := range strings.Fields(strings.TrimPrefix(command, name)) {
			if !o.any && w != "-" && strings.HasPrefix(w, "-") && !o.knows(w) {
				rt.Fatalf("%s: %q, and %s is not known", command, scopes, w)
			}
		}
	})
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
		if both := commandScopes(command + "\nzz-other x"); both != nil && !slices.Contains(both, "zz-other x") &&
			!strings.Contains(command, "<<") && !strings.HasSuffix(command, "\\") && !strings.Contains(command, "#") {
			t.Errorf("%q: the command behind it is covered: %q", command, both)
		}
	})
}
