package budget

import "strings"

// SelectNotes builds the memory digest: the heading and, below it, as many of
// the lines, each whole or not at all, as fit into limit tokens. A line that
// does not fit is left out and the next one is tried. omitted are the indexes of
// the lines left out. Without any line the digest is empty.
func SelectNotes(p *Policy, heading string, lines []string, limit int) (digest string, omitted []int) {
	digest = strings.TrimRight(heading, "\n")
	kept := false
	for i, line := range lines {
		longer := digest + "\n" + strings.TrimRight(line, "\n")
		if p.fields.text(line) > limit || p.fields.text(longer) > limit {
			omitted = append(omitted, i)
			continue
		}
		digest, kept = longer, true
	}
	if !kept {
		return "", omitted
	}
	return digest, omitted
}
