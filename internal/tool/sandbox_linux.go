package tool

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// landlockABI is the version of Landlock that the kernel has.
func landlockABI() (int, error) {
	abi, err := landlock.LandlockGetABIVersion()
	switch {
	case errors.Is(err, syscall.ENOSYS):
		return 0, errors.New("this kernel has no Landlock")
	case errors.Is(err, syscall.EOPNOTSUPP):
		return 0, errors.New("this kernel has Landlock turned off")
	case err != nil:
		return 0, fmt.Errorf("this system refuses Landlock: %w", err) // by a container's rules, say
	}
	return abi, nil
}

// The rights that a confined command has only where it may write. Reading and
// running programs are not among them, so that nothing has to be listed for
// these.
const (
	writeFileRights = landlock.AccessFSWriteFile | landlock.AccessFSTruncate
	writeRights     = writeFileRights | landlock.AccessFSRefer | landlock.AccessFSRemoveDir | landlock.AccessFSRemoveFile |
		landlock.AccessFSMakeChar | landlock.AccessFSMakeDir | landlock.AccessFSMakeReg | landlock.AccessFSMakeSock |
		landlock.AccessFSMakeFifo | landlock.AccessFSMakeBlock | landlock.AccessFSMakeSym
)

// rightsOf are those of writeRights that a version of Landlock knows. Before
// referABI it refuses all that later goes by that right.
func rightsOf(abi int) uint64 {
	rights := uint64(writeRights)
	if abi < referABI {
		rights &^= landlock.AccessFSRefer
	}
	if abi < truncateABI {
		rights &^= landlock.AccessFSTruncate
	}
	return rights
}

// SandboxExec becomes the command of args, which are --write PATH... -- COMMAND...,
// confined to the paths; see [Sandbox]. It only returns when it failed, and the
// command did not run.
func SandboxExec(args, environ []string) error {
	write, argv, err := sandboxArguments(args)
	if err != nil {
		return err
	}
	// A domain belongs to a thread, and what the thread executes keeps it. The
	// other threads end then.
	runtime.LockOSThread()
	if err := confine(write); err != nil {
		return fmt.Errorf("the sandbox could not be set up, so the command was not run: %w", err)
	}
	return fmt.Errorf("%s: %w", argv[0], syscall.Exec(argv[0], argv, environ))
}

// confine lets the thread write only in the given paths, for good.
func confine(write []string) error {
	abi, err := landlockABI()
	if err != nil {
		return err
	}
	rights := rightsOf(abi)
	rules, err := landlock.LandlockCreateRuleset(&landlock.RulesetAttr{HandledAccessFS: rights}, 0)
	if err != nil {
		return fmt.Errorf("landlock_create_ruleset: %w", err)
	}
	defer syscall.Close(rules)
	for _, p := range write {
		if err := allow(rules, p, rights); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	// Without it, an unprivileged thread could confine a program that has more
	// rights than itself.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := landlock.LandlockRestrictSelf(rules, 0); err != nil {
		if errors.Is(err, syscall.E2BIG) {
			err = errors.New("too many sandboxes in one another")
		}
		return fmt.Errorf("landlock_restrict_self: %w", err)
	}
	return nil
}

// allow adds a rule for a file or folder. The path was resolved before, so a link
// on it was put there since: nothing is allowed then, nor where nothing is.
func allow(rules int, path string, rights uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EACCES):
		return nil
	case err != nil:
		return err
	}
	defer syscall.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= writeFileRights
	}
	return landlock.LandlockAddPathBeneathRule(rules, &landlock.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights}, 0)
}

// otherwiseWritable reports whether this process, which is not confined, could write
// a file, or make it.
func otherwiseWritable(path string) bool {
	err := unix.Access(path, unix.W_OK)
	if errors.Is(err, syscall.ENOENT) {
		err = unix.Access(filepath.Dir(path), unix.W_OK)
	}
	return err == nil
}
