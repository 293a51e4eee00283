package session

import "testing"

// A file system that cannot sync folders is no reason not to save sessions there.
func TestFoldersThatCannotBeSynced(t *testing.T) {
	if err := syncFolder("/proc/self"); err != nil { // as little as a shared folder of a virtual machine
		t.Error(err)
	}
	if err := syncFolder("/proc/self/nothing"); err == nil {
		t.Error("a folder that is not there is synced")
	}
}
