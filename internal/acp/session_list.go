package acp

import (
	"context"
	"encoding/base64"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/jsonrpc2"
	"github.com/drover-dev/drover/internal/session"
)

// sessionList lists the sessions on disk, the one changed last first, in pages.
func (s *Server) sessionList(req *jsonrpc2.Request) (any, error) {
	o, err := params(req)
	if err != nil {
		return nil, err
	}
	cwd := o.textOr("cwd")
	if cwd != "" {
		if !filepath.IsAbs(cwd) {
			return nil, badParams("cwd must be an absolute path")
		}
		cwd = filepath.Clean(cwd)
	}
	after := ""
	if text, ok := o.text("cursor"); ok {
		if after, ok = readCursor(text); !ok {
			return nil, badParams("cursor is not one of session/list")
		}
	}
	return req.Go(func(context.Context) (any, error) {
		infos, err := s.opts.Sessions.List(&session.ListOptions{CWD: cwd})
		if err != nil {
			return nil, internal(codeStorage, err.Error())
		}
		return page(infos, after), nil
	})
}

// page is the part of the list behind a place. The place is that of the last
// session shown, so that sessions made or changed meanwhile repeat nothing.
func page(infos []session.Info, after string) listAnswer {
	answer := listAnswer{Sessions: []sessionInfo{}}
	for i := range infos {
		info := &infos[i]
		if info.CWD == "" || after != "" && place(info) >= after {
			continue
		}
		if len(answer.Sessions) == maxPage {
			answer.NextCursor = cursor(answer.last)
			break
		}
		answer.Sessions = append(answer.Sessions, sessionInfo{
			SessionID: info.ID, CWD: info.CWD, Title: line(info.Title), UpdatedAt: timestamp(info.Updated),
		})
		answer.last = place(info)
	}
	return answer
}

// place orders sessions as the list does.
func place(info *session.Info) string {
	return info.Updated.UTC().Format("20060102T150405.000000000") + " " + info.ID
}

const cursorPrefix = "s1 "

func cursor(place string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + place))
}

func readCursor(text string) (place string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(raw), cursorPrefix)
}
