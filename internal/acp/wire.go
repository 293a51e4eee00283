package acp

import "encoding/json"

// The messages that this side sends, as the schema has them. Members that may
// be left out are.

type initializeAnswer struct {
	ProtocolVersion int               `json:"protocolVersion"`
	Capabilities    agentCapabilities `json:"agentCapabilities"`
	AuthMethods     []struct{}        `json:"authMethods"`
	AgentInfo       implementation    `json:"agentInfo"`
}

type implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type agentCapabilities struct {
	LoadSession bool `json:"loadSession"`
	Prompt      struct {
		Image           bool `json:"image"`
		EmbeddedContext bool `json:"embeddedContext"`
	} `json:"promptCapabilities"`
	MCP struct {
		HTTP bool `json:"http"`
		SSE  bool `json:"sse"`
	} `json:"mcpCapabilities"`
	// Session capabilities are objects, never booleans: a member that is there
	// is supported.
	Session struct {
		List                  struct{} `json:"list"`
		Resume                struct{} `json:"resume"`
		Close                 struct{} `json:"close"`
		Delete                struct{} `json:"delete"`
		AdditionalDirectories struct{} `json:"additionalDirectories"`
	} `json:"sessionCapabilities"`
}

// empty is the answer that says nothing but yes.
type empty struct{}

// sessionState is the answer to session/load and session/resume, and with an id
// that to session/new.
type sessionState struct {
	SessionID     string         `json:"sessionId,omitempty"`
	Modes         *modeState     `json:"modes,omitempty"`
	ConfigOptions []configOption `json:"configOptions,omitempty"`
}

type modeState struct {
	Current   string `json:"currentModeId"`
	Available []mode `json:"availableModes"`
}

type mode struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// configOption is one selector. Options is a []selectValue or a []selectGroup.
type configOption struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Category    string `json:"category"`
	Type        string `json:"type"` // "select"
	Current     string `json:"currentValue"`
	Options     any    `json:"options"`
}

type selectValue struct {
	Value       string `json:"value"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

type selectGroup struct {
	Group   string        `json:"group"`
	Name    string        `json:"name"`
	Options []selectValue `json:"options"`
}

type configState struct {
	ConfigOptions []configOption `json:"configOptions"`
}

type promptAnswer struct {
	StopReason string `json:"stopReason"`
}

type listAnswer struct {
	Sessions   []sessionInfo `json:"sessions"`
	NextCursor string        `json:"nextCursor,omitempty"`

	last string // the place of the last session
}

type sessionInfo struct {
	SessionID string `json:"sessionId"`
	CWD       string `json:"cwd"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"`
}

// notification is the parameters of session/update.
type notification struct {
	SessionID string `json:"sessionId"`
	Update    any    `json:"update"`
}

// chunk is a piece of a message.
type chunk struct {
	Kind      string `json:"sessionUpdate"`
	Content   any    `json:"content"`
	MessageID string `json:"messageId,omitempty"`
}

// The kinds of chunks.
const (
	userChunk    = "user_message_chunk"
	messageChunk = "agent_message_chunk"
	thoughtChunk = "agent_thought_chunk"
)

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func textContent(s string) textBlock { return textBlock{"text", s} }

type imageBlock struct {
	Type     string `json:"type"`
	Data     []byte `json:"data"`
	MimeType string `json:"mimeType"`
}

// toolCall is a tool_call or, with what has changed alone, a tool_call_update.
type toolCall struct {
	Kind      string          `json:"sessionUpdate,omitempty"` // absent inside a permission request
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title,omitempty"`
	Name      string          `json:"name,omitempty"`
	ToolKind  string          `json:"kind,omitempty"`
	Status    string          `json:"status,omitempty"`
	Content   []any           `json:"content,omitempty"`
	Locations []location      `json:"locations,omitempty"`
	RawInput  json.RawMessage `json:"rawInput,omitempty"`
	Meta      any             `json:"_meta,omitempty"`
}

// The statuses of a tool call.
const (
	statusPending   = "pending"
	statusRunning   = "in_progress"
	statusCompleted = "completed"
	statusFailed    = "failed"
)

type location struct {
	Path string `json:"path"`
	Line int    `json:"line,omitempty"`
}

// blockContent, diffContent and terminalContent are what a tool call shows.
type blockContent struct {
	Type    string `json:"type"`
	Content any    `json:"content"`
}

type diffContent struct {
	Type    string  `json:"type"`
	Path    string  `json:"path"`
	OldText *string `json:"oldText"` // null: the file is new
	NewText string  `json:"newText"`
}

type terminalContent struct {
	Type       string `json:"type"`
	TerminalID string `json:"terminalId"`
}

type plan struct {
	Kind    string      `json:"sessionUpdate"`
	Entries []planEntry `json:"entries"`
}

type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

type usageUpdate struct {
	Kind string `json:"sessionUpdate"`
	Used int    `json:"used"`
	Size int    `json:"size"`
	Cost *cost  `json:"cost,omitempty"`
}

// cost is what a session has cost so far.
type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

type noticeUpdate struct {
	Kind        string `json:"sessionUpdate"`
	Severity    string `json:"severity"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

type commandsUpdate struct {
	Kind     string             `json:"sessionUpdate"`
	Commands []availableCommand `json:"availableCommands"`
}

type availableCommand struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Input       *commandInput `json:"input,omitempty"`
}

type commandInput struct {
	Hint string `json:"hint"`
}

type infoUpdate struct {
	Kind      string `json:"sessionUpdate"`
	Title     string `json:"title,omitempty"`
	UpdatedAt string `json:"updatedAt,omitempty"`
}

type modeUpdate struct {
	Kind    string `json:"sessionUpdate"`
	Current string `json:"currentModeId"`
}

type optionsUpdate struct {
	Kind          string         `json:"sessionUpdate"`
	ConfigOptions []configOption `json:"configOptions"`
}

type permissionRequest struct {
	SessionID string             `json:"sessionId"`
	ToolCall  toolCall           `json:"toolCall"`
	Options   []permissionOption `json:"options"`
}

type permissionOption struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}
