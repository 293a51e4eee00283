package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// agentID is drover's name in the registry of ACP agents, and its folder there.
const agentID = "drover"

const repository = "https://github.com/drover-dev/drover"

// agent is an entry of the registry, as its FORMAT.md has it.
type agent struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Version      string   `json:"version"`
	Description  string   `json:"description"`
	Repository   string   `json:"repository"`
	Website      string   `json:"website"`
	Authors      []string `json:"authors"`
	License      string   `json:"license"`
	LicenseURL   string   `json:"license_url"`
	Distribution struct {
		Binary map[string]agentBinary `json:"binary"`
	} `json:"distribution"`
}

type agentBinary struct {
	Archive string   `json:"archive"`
	SHA256  string   `json:"sha256"`
	Cmd     string   `json:"cmd"`
	Args    []string `json:"args"`
}

func newAgent(version string) *agent {
	a := &agent{
		ID: agentID, Name: "drover", Version: version,
		Description: "Works with any language model, local ones first, and never lies about what the model was sent",
		Repository:  repository, Website: repository + "#readme", Authors: []string{"The drover authors"},
		License: "MIT", LicenseURL: repository + "/blob/main/LICENSE",
	}
	a.Distribution.Binary = make(map[string]agentBinary)
	return a
}

// platform is the registry's name of a target.
func (t target) platform() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[t.arch]
	return t.os + "-" + arch
}

// add takes in the archive of a target.
func (a *agent) add(t target, archive string) error {
	sum, err := fileSum(archive)
	if err != nil {
		return err
	}
	a.Distribution.Binary[t.platform()] = agentBinary{
		Archive: fmt.Sprintf("%s/releases/download/v%s/%s", repository, a.Version, filepath.Base(archive)),
		SHA256:  sum, Cmd: "./" + t.program(), Args: []string{"acp"},
	}
	return nil
}

// write writes the entry and its icon.
func (a *agent) write(dir, source string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "agent.json"), append(data, '\n'), 0o644); err != nil {
		return err
	}
	icon, err := os.ReadFile(filepath.Join(source, "scripts", "release", "icon.svg"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "icon.svg"), icon, 0o644)
}
