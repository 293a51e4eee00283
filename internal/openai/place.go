package openai

import "fmt"

// MessagePlace names the place in a body that [DecodeRequest] has read at which one
// of its Messages stands: line, column and path. Of an index that is none of them it
// names the place of the array.
func MessagePlace(body []byte, index int) string {
	doc, bad := parseDocument(body)
	if bad != nil {
		return ""
	}
	d := &requestDecoder{body: body}
	messages := doc.get("messages")
	at, path := messages.at, "messages"
	i, counted, leading := 0, 0, true
	for m := range messages.elements() {
		role := m.get("role").str()
		leading = leading && (role == "system" || role == "developer")
		if !leading {
			if counted == index {
				at, path = m.at, fmt.Sprintf("messages[%d]", i)
			}
			counted++
		}
		i++
	}
	return d.place(at) + ": " + path
}
