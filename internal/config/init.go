package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrExists says that there is a configuration file already.
var ErrExists = errors.New("there is a configuration file already")

// Init writes a file with every setting as a comment. It never touches one that
// is there.
func Init(path string) (err error) {
	if path == "" {
		return ErrNoHome
	}
	if err := os.MkdirAll(filepath.Dir(path), folderMode); err != nil {
		return fmt.Errorf("the folder of %s cannot be made: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", path, ErrExists)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	_, err = f.WriteString(initText)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(path)
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return nil
}

// initText shows every key. A setting begins with a number sign, words with one
// and a space.
const initText = `# The configuration of drover. Everything is optional: take the "#" in front of
# a setting away to use it. "drover config check" looks for mistakes.

# The model to start with: the name of an engine, a slash, the model's id.
# "drover engines use PROVIDER/MODEL" writes it.
#model = "ollama/qwen3-coder:30b"

# How much work an answer gets: graze, trot, climb or summit.
#effort = "climb"

# What runs without asking: ask, edit, read-only or full.
#mode = "ask"

#[budget]
# How drover decides what of a conversation fits the window: 2, or the cautious 1.
#policy = 2

#[instructions]
# More instruction files for the model. Relative paths start at this folder.
#files = ["house-rules.md"]

#[images]
# Images of more than 1,456 pixels are sent smaller; the session keeps the original.
#scale = true

#[session]
# Where titles come from: the first words of a session, or the model.
#titles = "words"

#[tools]
# Tools that are not offered to the model.
#off = ["shell"]

# On Linux, commands write only in the work tree, temporary and cache folders, and
# here. In mode full they write everywhere, as they do with off.
#[sandbox]
#off = false
#write = ["~/.local/share/pnpm"]

# In an editor, run commands in the editor's own terminal if it offers one.
#[acp]
#terminal = true

# A table for each engine; "drover engines add" writes one. With none drover looks
# at the default ports of this machine. The name is the part in front of the slash
# in PROVIDER/MODEL.
#[engines.lab]
# ollama, llamacpp, lmstudio, omlx, vmlx, vllm, sglang or custom.
#preset = "custom"
# What stands in front of /v1/models. Only custom needs one.
#url = "https://llm.example.org"
# Where the key is, never the key itself: env:NAME, file:PATH, or keyring:NAME for
# one that "drover auth set NAME" has stored.
#key = "keyring:LAB"
# The window in tokens. It lowers what the engine reports, or stands in for it.
#context = 32768
# What the models' templates want beyond the common dialect: generic, qwen,
# deepseek or replay.
#profile = "generic"
# Send the key over plain http to a public host.
#insecure = false
# Who chooses the temperature: effort or engine.
#sampling = "effort"
# A single model of it.
#[engines.lab.models."some/model:7b"]
#profile = "qwen"

# DeepSeek, with another key than that in DEEPSEEK_API_KEY, another address, or
# other models in its list.
#[deepseek]
#key = "keyring:DEEPSEEK"
#url = "https://api.deepseek.com"
#models = [{ id = "deepseek-v4-flash" }, { id = "my-private", name = "Ours", description = "" }]

# Providers of the installed catalogue, and what is special about one.
#[hosted]
#providers = ["openrouter"]
#[hosted.settings.openrouter]
#key = "env:OPENROUTER_API_KEY"
#url = "https://openrouter.ai/api/v1"
#profile = "generic"

# MCP servers, whose tools the model gets: a program, or an address.
#[mcp.servers.files]
#command = "npx"
#args = ["-y", "@modelcontextprotocol/server-filesystem", "."]
# Variables for the program; env:NAME and keyring:NAME are replaced.
#env.DEBUG = "1"
#[mcp.servers.search]
#url = "https://search.example.org/mcp"
# The older HTTP+SSE transport.
#sse = false
#headers.Authorization = "Bearer keyring:SEARCH"
`
