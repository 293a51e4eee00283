package tool

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// A program of harmlessTable is covered by its name, whatever it is called with, as
// long as all of its options are known: one that is not might run another program or
// write a file, and programs take abbreviations of long ones. The lines hold, behind
// the command and a colon,
//
//   - no option does harm
//     -abn:       letters as getopt reads them; one with a colon takes a value, # is a digit
//     --long      a long option, perhaps with "=value", in full
//     =name       an option that is one word behind one or two dashes, as in Go and find
//     <2          at most so many words that are no options
//     own         the words that are no options belong to the scope
const harmlessTable = `
basename cat chmod cksum cmp comm cp cut date df diff dirname du echo egrep expand expr false fgrep fmt fold grep groups head id jq join ln ls md5sum mkdir mktemp mv nl nproc od paste ps pwd readlink realpath rev rm rmdir seq sha1sum sha256sum sha512sum shasum sleep stat sum tac tail tee touch tr true tsort type uname unexpand uptime wc which whoami: *
file: -bikLs --brief --mime --mime-type --mime-encoding --dereference
sort: -bdfghiMnRrVcCuzsmk:t:S: --reverse --numeric-sort --unique --key --field-separator --human-numeric-sort --version-sort --ignore-case --check --stable --zero-terminated --general-numeric-sort --month-sort --dictionary-order
uniq: -cdDiuzf:s:w: --count --repeated --unique --ignore-case <1
wait: <99
sed: -nErsuz --quiet --silent --regexp-extended
tar: -xctvzjJpkmOf:C: --extract --list --create --file --gzip --bzip2 --xz --zstd --directory --verbose --strip-components --exclude
split: -dl:b:n:a: --lines --bytes --number --suffix-length --numeric-suffixes
tree: -adfilpsugDFhrtQNL:P:I: --gitignore --dirsfirst --noreport
rg: -nilwcvoFshSuUPLxNHIqp0aA:B:C:e:g:t:T:m:r:M:d:j: --files --hidden --no-ignore --glob --type --ignore-case --line-number --files-with-matches --count --context --after-context --before-context --max-count --no-heading --heading --color --fixed-strings --word-regexp --json --multiline --sort --stats --type-list --version --max-depth --follow --text --only-matching --smart-case
fd fdfind: -HIuaLpsigFe:t:E:d: --hidden --no-ignore --extension --type --exclude --max-depth --follow --glob
find: =name =iname =path =ipath =wholename =regex =iregex =regextype =type =xtype =size =mtime =mmin =atime =amin =ctime =cmin =newer =empty =maxdepth =mindepth =depth =prune =print =print0 =printf =o =a =not =or =and =mount =xdev =perm =user =group =nouser =nogroup =links =inum =samefile =readable =writable =executable =true =false =quit =ls =L =H =P =follow =daystart
man: -kfw
zip: -rqjv#
rsync: -avznrtplogDHuhic --dry-run --archive --verbose --recursive --stats --checksum --exclude --delete
scp: -rpqCvP:
curl: -sSLfIivk --silent --location --head --fail --show-error --include
wget: -qcN --quiet --continue --spider
gcc g++ cc c++ clang clang++ rustc javac ctags: <99
make, gmake: -knsBiqwj: --silent --dry-run --keep-going --always-make --jobs --no-print-directory own
git status: -sbvzu: --short --branch --porcelain --long --untracked-files --ignored --show-stash
git diff, git log, git show, git whatchanged, git shortlog, git rev-list: -pusnczqiEFgmrtRabwM:C:U:WS:G:L:n:e# --oneline --stat --shortstat --numstat --name-only --name-status --graph --decorate --all --format --pretty --abbrev-commit --since --until --after --before --author --committer --grep --no-merges --merges --follow --patch --no-patch --reverse --first-parent --date --cached --staged --color --no-color --word-diff --ignore-all-space --ignore-space-change --ignore-blank-lines --unified --diff-filter --summary --check --quiet --exit-code --no-index --no-ext-diff --no-textconv --raw --max-count --skip --branches --tags --remotes --merge-base --find-renames --topo-order --no-renames --minimal --patience --histogram --text --no-prefix --full-index --left-right --cherry-pick --not --relative --numbered --email --count --no-pager
git grep: -niwlLcvhHEFGPopWqA:B:C:e:# --line-number --ignore-case --name-only --files-with-matches --count --untracked --cached --heading --break --all-match --and --or --not --show-function --max-depth --word-regexp --fixed-strings --extended-regexp --perl-regexp
git blame: -wMCesfltnL: --date
git add: -AunvfN --all --update --dry-run --verbose --force --intent-to-add
git commit: -asvqnm:F:C: --message --all --amend --no-edit --signoff --quiet --allow-empty --no-verify --dry-run --author --date --file
git checkout, git switch, git restore: -fqtdSWb:B:c:C:s: --track --detach --quiet --force --ours --theirs --create --staged --worktree --source --guess
git branch: -avrdDmMfqlu: --list --all --remotes --show-current --contains --merged --no-merged --sort --format --verbose --delete
git fetch: -apqtvfn --all --prune --tags --quiet --verbose --depth --dry-run --force --no-tags --unshallow
git pull: -rqv --rebase --ff-only --no-rebase --quiet --verbose --prune --tags --no-edit --autostash
git push: -uqvfnd --set-upstream --tags --dry-run --force-with-lease --quiet --verbose --force --delete --all --follow-tags --porcelain
git clone: -qvb: --depth --branch --quiet --verbose --single-branch
git merge: -qvnm: --no-ff --ff-only --squash --abort --continue --no-commit --no-edit --message --stat --quiet
git rebase: -q --abort --continue --skip --quit --autostash --onto --quiet
git reset: -q --hard --soft --mixed --quiet --keep
git rm: -rfqn --cached --force --quiet --dry-run
git mv: -fkvn --force --verbose --dry-run
git tag: -lndafm: --list --sort --contains --points-at --format --delete --annotate --message
git cherry-pick, git revert: -nx --no-commit --no-edit --abort --continue --skip
git cat-file: -ptse
git rev-parse, git ls-files, git ls-tree, git merge-base, git describe: *
git remote: -v --verbose <0
git stash: <0
go build: =v =race =tags =trimpath =a =n =x =p =mod =buildvcs
go test: =v =race =run =count =short =timeout =cover =covermode =bench =benchmem =benchtime =cpu =failfast =shuffle =parallel =json =list =skip =fullpath =tags =trimpath =mod =vet =p =a =n =x
go vet: =v =tags =json =race =mod
go list: =m =json =f =deps =e =test =u =versions =find =tags =mod
go doc: =all =src =u =short =cmd =c
go version: =m =v
go env: =json
go fmt: =n =x =mod
go mod tidy, go mod download, go mod verify, go mod graph, go mod why: =v =e =m =json =x =diff
gofmt: =l =d =s =e
cargo build, cargo check, cargo test, cargo clippy, cargo doc, cargo tree, cargo bench, cargo metadata: -qvrj:p:F: --release --all --workspace --quiet --verbose --locked --offline --frozen --all-targets --all-features --no-default-features --features --package --lib --bin --bins --test --tests --example --examples --bench --benches --doc --no-run --no-fail-fast --jobs --message-format --profile --exclude --no-deps
cargo fmt: --all --check
npm test, npm ci: -s --silent --workspaces --if-present <0
npm run: -s --silent --workspaces --if-present <1 own
pytest, python -m pytest, python3 -m pytest: -vqsxlk:m:n:r: --maxfail --lf --ff --tb --durations --collect-only --no-header --verbose --quiet
`

// options are what is known of a command's options.
type options struct {
	any         bool
	letters     map[byte]bool // whether it takes a value
	long, words map[string]bool
	operands    int // how many words that are no options there may be
	own         bool
}

// manyOperands is more words than a command line has.
const manyOperands = maxScopedCommand

// harmless is the table, read when the first command is looked at.
var harmless = sync.OnceValue(func() map[string]*options { return parseHarmless(harmlessTable) })

func parseHarmless(table string) map[string]*options {
	all := make(map[string]*options)
	for line := range strings.Lines(strings.TrimSpace(table)) {
		names, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		o := &options{letters: make(map[byte]bool), long: make(map[string]bool), words: make(map[string]bool), operands: manyOperands}
		for _, f := range strings.Fields(rest) {
			o.add(f)
		}
		list := strings.Fields(names) // programs, or commands of several words with commas
		if strings.Contains(names, ",") || subcommands[list[0]] {
			list = strings.Split(names, ", ")
		}
		for _, name := range list {
			all[name] = o
		}
	}
	return all
}

func (o *options) add(field string) {
	switch {
	case field == "*":
		o.any = true
	case field == "own":
		o.own = true
	case strings.HasPrefix(field, "--"):
		o.long[field] = true
	case field[0] == '=':
		o.words[field[1:]] = true
	case field[0] == '<':
		o.operands = 0
		for _, c := range field[1:] {
			o.operands = 10*o.operands + int(c-'0')
		}
	default:
		for i := 1; i < len(field); i++ {
			if field[i] != ':' {
				o.letters[field[i]] = i+1 < len(field) && field[i+1] == ':'
			}
		}
	}
}

// allow reports whether all words behind a command are known to do no harm, and
// gives those that are no options.
func (o *options) allow(args []argument) (operands []string, ok bool) {
	for _, a := range args {
		switch {
		case o.any:
		case a.variable, a.pattern && !plainStart(a.text):
			return nil, false // it may become an option
		case len(a.text) > 1 && a.text[0] == '-':
			if !o.knows(a.text) || a.pattern {
				return nil, false
			}
			continue
		case strings.HasPrefix(a.text, "@"):
			return nil, false // a file of options, in some programs
		}
		operands = append(operands, a.text)
	}
	return operands, len(operands) <= o.operands
}

// plainStart reports whether a word with a pattern starts with what cannot be part
// of it, nor of an option.
func plainStart(word string) bool {
	return word != "" && !strings.ContainsRune("-*?[~+@", rune(word[0]))
}

// knows reports whether a word that is one option, or several, is known.
func (o *options) knows(word string) bool {
	name, _, _ := strings.Cut(word, "=")
	switch {
	case word == "--", o.long[name], o.words[strings.TrimPrefix(name[1:], "-")]:
		return true
	case strings.HasPrefix(word, "--"):
		return false
	}
	if len(o.words) > 0 { // "-7" may be a value there
		return strings.Trim(name[1:], "0123456789") == ""
	}
	for i := 1; i < len(word); i++ {
		letter := word[i]
		if letter >= '0' && letter <= '9' {
			letter = '#'
		}
		value, known := o.letters[letter]
		if !known {
			return false
		}
		if value {
			return true // the rest is its value
		}
	}
	return true
}

// letterwise reports whether all letters of a word are known options.
func (o *options) letterwise(word string) bool {
	for i := range len(word) {
		if _, known := o.letters[word[i]]; !known {
			return false
		}
	}
	return true
}

// programFolders hold the programs of the system: /usr/bin/git is git, ./git is
// whatever somebody called so.
var programFolders = set("/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin")

// known finds the longest command of the table at the start of a command, and how
// many words it has.
func known(args []argument) (o *options, words int) {
	name := args[0].text
	if dir := path.Dir(name); strings.Contains(name, "/") {
		if !programFolders[dir] {
			return nil, 0
		}
		name = path.Base(name)
	}
	name = strings.TrimSuffix(name, ".exe")
	o, words = harmless()[name], 1
	for i := 1; i < min(len(args), 3) && args[i].literal(); i++ {
		name += " " + args[i].text
		if longer := harmless()[name]; longer != nil {
			o, words = longer, i+1
		}
	}
	return o, words
}

// knownScope is the scope of a command of the table.
func knownScope(o *options, args []argument, words int) (scope string, ok bool) {
	operands, ok := o.allow(args[words:])
	if !ok {
		return "", false
	}
	names := make([]string, 0, words+len(operands))
	for _, a := range args[:words] {
		names = append(names, a.text)
	}
	if o.own {
		for _, name := range operands {
			if !plainName.matches(name) || makeVariable.matches(name) {
				return "", false
			}
		}
		names = append(names, operands...)
	}
	switch strings.TrimSuffix(path.Base(args[0].text), ".exe") {
	case "sed":
		ok = len(operands) > 0 && sedScript.matches(operands[0])
	case "tar":
		// Its first word may be options without a dash, and a colon in a file's name
		// means another machine, which is reached by running a program.
		colon := slices.ContainsFunc(args, func(a argument) bool { return strings.Contains(a.text, ":") })
		ok = !colon && len(args) > 1 && (args[1].text[:min(1, len(args[1].text))] == "-" || o.letterwise(args[1].text))
	}
	scope = strings.Join(names, " ")
	return scope, ok && len(scope) <= maxExactScope
}
