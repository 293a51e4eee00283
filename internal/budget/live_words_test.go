//go:build engines

package budget_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// writing is how a script is written: words, what separates them, and how a
// sentence ends.
type writing struct {
	words    []string
	space    string
	fullStop string
}

var writings = []writing{
	{strings.Fields("the drover walks behind herd and counts every gate before evening while files change because nobody " +
		"expects that configuration Straße naïve żółw œuvre año together with responsibilities understanding"), " ", ". "},
	{strings.Fields("погонщик идёт за стадом и считает головы у каждых ворот прежде чем наступит вечер изменения файла " +
		"неожиданно проверяются ответственность"), " ", ". "},
	{strings.Fields("ο βοσκός περπατά πίσω από το κοπάδι και μετράει κάθε πύλη πριν βραδιάσει τα αρχεία αλλάζουν"), " ", ". "},
	{strings.Fields("يمشي الراعي خلف القطيع ويعد الرؤوس عند كل باب قبل المساء ثم تتغير الملفات بسرعة"), " ", "، "},
	{strings.Fields("चरवाहा झुंड के पीछे चलता है और हर द्वार पर सिर गिनता है शाम से पहले फ़ाइलें बदलती हैं"), " ", "। "},
	{strings.Fields("คนต้อน เดิน ตาม ฝูงสัตว์ และ นับ หัว ทุก ประตู ก่อน ค่ำ แฟ้ม เปลี่ยนแปลง บ่อย"), "", " "},
	{strings.Fields("牧人 走在 羊群 后面 在 每一道 门口 数数 傍晚 之前 文件 会 改变 配置 程序 運行 測試 結果"), "", "。"},
	{strings.Fields("목동은 무리 뒤에서 걸으며 문마다 머리를 세고 저녁이 오기 전에 파일이 바뀐다 설정을 확인한다"), " ", ". "},
}

// The pieces that generated code is made of.
var (
	identifiers = strings.Fields("ctx err buf msg plan count window user_name parseHeader HTTPClient i n maxRetries _private " +
		"TokenBudget toolCallID x0 fooBarBaz SOME_CONSTANT internal")
	statements = []string{
		"if %s != nil {\n\t\treturn fmt.Errorf(\"%s: %%w\", %s)\n\t}",
		"for %s := range %s { %s++ } // why not",
		"func (%s *%s) %s(ctx context.Context) (int, error) {",
		"\t\tassert.Equal(t, %s, %s[%s])",
		"def %s(self, %s=None, *%s):\n        \"\"\"Docstring.\"\"\"",
		"<div class=\"%s\" data-id='%s'>{{ %s }}</div>",
		"const %s=async(%s)=>await %s.map(x=>x**2);",
		"SELECT %s, COUNT(*) FROM %s GROUP BY %s HAVING COUNT(*) > 1;",
		"#define %s(%s) ((%s) << 3 | 0x7F)",
		"\t}\n\n\n\t// %s %s: %s",
		"$ %s --%s=%s 2>&1 | tee out.log",
	}
)

// maker makes texts and conversations from one seed.
type maker struct{ *rand.Rand }

// size draws a number from low to high, as often below as above their geometric
// mean.
func (m maker) size(low, high int) int {
	return int(float64(low) * math.Pow(float64(high)/float64(low), m.Float64()))
}

func pick[T any](m maker, from []T) T { return from[m.IntN(len(from))] }

// text makes about n bytes of one kind, or at times of several.
func (m maker) text(n int) string {
	if n > 200 && m.IntN(4) == 0 {
		return m.text(n/2) + "\n" + m.text(n/2)
	}
	kinds := []func(int) string{m.prose, m.prose, m.prose, m.code, m.code, m.json, m.log, m.base64, m.symbols}
	return pick(m, kinds)(n)
}

func (m maker) prose(n int) string {
	var b strings.Builder
	w := pick(m, writings)
	for b.Len() < n {
		for range 3 + m.IntN(12) {
			b.WriteString(pick(m, w.words))
			b.WriteString(w.space)
		}
		b.WriteString(w.fullStop)
		if m.IntN(5) == 0 {
			b.WriteString("\n\n")
			w = pick(m, writings)
		}
	}
	return b.String()
}

func (m maker) code(n int) string {
	var b strings.Builder
	numbered := m.IntN(2) == 0
	for line := 1; b.Len() < n; line++ {
		if numbered {
			fmt.Fprintf(&b, "%6d\t", line)
		}
		b.WriteString(strings.Repeat("\t", m.IntN(4)))
		fmt.Fprintf(&b, pick(m, statements)+"\n", pick(m, identifiers), pick(m, identifiers), pick(m, identifiers))
	}
	return b.String()
}

func (m maker) json(n int) string {
	var rows []any
	for size := 0; size < n; size += 130 {
		rows = append(rows, map[string]any{
			pick(m, identifiers): m.Uint32(), "ok": m.IntN(2) == 0, "ratio": m.NormFloat64(), "none": nil,
			"name": pick(m, pick(m, writings).words), "tags": []string{pick(m, identifiers), "<&>\"\\"}, "id": m.hex(16),
		})
	}
	var data []byte
	if m.IntN(2) == 0 {
		data, _ = json.MarshalIndent(rows, "", "  ")
	} else {
		data, _ = json.Marshal(rows)
	}
	return string(data)
}

func (m maker) log(n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "2026-%02d-%02dT%02d:%02d:%02d.%03dZ %s [%d] %s %s:%d 0x%x\n", 1+m.IntN(12), 1+m.IntN(28), m.IntN(24), m.IntN(60),
			m.IntN(60), m.IntN(1000), pick(m, []string{"INFO", "WARN", "ERROR"}), m.IntN(99999), m.uuid(),
			"internal/"+pick(m, identifiers)+".go", m.IntN(900), m.Uint64())
	}
	return b.String()
}

func (m maker) base64(n int) string { return base64.StdEncoding.EncodeToString(m.bytes(n * 3 / 4)) }

// symbols is what is hard on estimators: emoji, runs, tables, words of random
// letters, rare characters and bytes that are no text.
func (m maker) symbols(n int) string {
	var b strings.Builder
	for b.Len() < n {
		switch m.IntN(8) {
		case 0:
			b.WriteString(pick(m, []string{"👩‍👩‍👧‍👦", "🇩🇪", "😀🎉", "e\u0301", "\u200b", "✅ ", "→", "½"}))
		case 1:
			b.WriteString(strings.Repeat(pick(m, []string{"-", "=", "*", " ", "\n", "─", "#", ".", "\t", "█"}), 1+m.IntN(70)))
		case 2:
			fmt.Fprintf(&b, "| %d | %.3f | %s |\n", m.IntN(1e6), m.Float64(), pick(m, identifiers))
		case 3:
			for range 2 + m.IntN(14) {
				b.WriteByte("aeioubcdfghjklmnpqrstvwxyzAEX"[m.IntN(29)])
			}
			b.WriteByte(' ')
		case 4:
			for range 1 + m.IntN(8) {
				b.WriteRune(rune(0x4e00 + m.IntN(0x5200)))
			}
		case 5:
			b.WriteRune(rune(0xa0 + m.IntN(0x2f00)))
		case 6:
			if m.IntN(10) == 0 {
				b.Write(m.bytes(6))
			}
		default:
			b.WriteString(m.hex(40) + " ")
		}
	}
	return b.String()
}

func (m maker) bytes(n int) []byte {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(m.Uint32())
	}
	return data
}

func (m maker) hex(digits int) string { return hex.EncodeToString(m.bytes(digits / 2)) }

func (m maker) uuid() string {
	h := m.hex(32)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
