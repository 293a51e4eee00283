package acp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/session"
	"github.com/drover-dev/drover/internal/tool"
)

// setup is what session/new, session/load and session/resume have in common.
type setup struct {
	dir     string
	dirs    []string
	servers []tool.ServerSpec
	notices []string
}

// readSetup reads and checks the parameters without looking at the disk.
func readSetup(o object) (setup, error) {
	dir, ok := o.text("cwd")
	if !ok || !filepath.IsAbs(dir) {
		return setup{}, badParams("cwd must be an absolute path")
	}
	s := setup{dir: filepath.Clean(dir)}
	for _, d := range o.texts("additionalDirectories") {
		if !filepath.IsAbs(d) {
			return setup{}, badParams("additionalDirectories: %.200q is not an absolute path", d)
		}
		if d = filepath.Clean(d); d != s.dir && !slices.Contains(s.dirs, d) {
			s.dirs = append(s.dirs, d)
		}
	}
	s.servers, s.notices = readServers(o)
	return s, nil
}

// check looks at the directories.
func (s *setup) check() error {
	for _, dir := range append([]string{s.dir}, s.dirs...) {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return badParams("%s is not a folder that can be read", dir)
		}
	}
	return nil
}

// sessionNew makes a session. The list of models is read before anything of the
// session exists, so what goes wrong there leaves nothing behind.
func (s *Server) sessionNew(req *jsonrpc2.Request) (any, error) {
	o, err := params(req)
	if err != nil {
		return nil, err
	}
	set, err := readSetup(o)
	if err != nil {
		return nil, err
	}
	return req.Go(func(ctx context.Context) (any, error) {
		if err := set.check(); err != nil {
			return nil, err
		}
		if err := s.opts.ConfigError; err != nil {
			return nil, internal(codeConfiguration, err.Error())
		}
		cat := s.readCatalogue(ctx)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		log, err := s.opts.Sessions.Create(set.dir, &session.CreateOptions{Program: s.opts.Version})
		if err != nil {
			log = session.Memory(set.dir)
			set.notices = append(set.notices, fmt.Sprintf("This session is not saved: %v.", err))
		} else if log.InMemory() {
			set.notices = append(set.notices, "This session is not saved: there is no folder for sessions.")
		}
		c := s.newConversation(log.ID())
		w := c.openWorkbench(ctx, &set, cat, log, log.NewState())
		if _, ok := s.publish(c); !ok {
			c.shut()
			return nil, jsonrpc2.ErrClosed
		}
		answer := c.state(w)
		answer.SessionID = c.id
		c.announce(w)
		return answer, nil
	})
}
