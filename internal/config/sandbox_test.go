package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestSandbox(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	top := filepath.VolumeName(home) + string(filepath.Separator)
	c, err := Parse("c.toml", []byte("[sandbox]\noff = true\nwrite = ['~/a', '"+top+"b/']\n"))
	if err != nil || !c.SandboxOff || !reflect.DeepEqual(c.SandboxWrite, []string{filepath.Join(home, "a"), top + "b"}) {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := Parse("c.toml", nil); err != nil || c.SandboxOff || c.SandboxWrite != nil {
		t.Errorf("%+v %v", c, err)
	}
	_, err = Parse("c.toml", []byte("[sandbox]\nwrite = ['a', '~b', '']\n"))
	if err == nil || strings.Count(err.Error(), "c.toml:2:1: sandbox.write: ") != 3 {
		t.Errorf("%v", err)
	}
}
