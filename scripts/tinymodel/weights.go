package main

import (
	"fmt"
	"math"
)

// The transformer has one layer with one head. Its residual stream holds named
// channels: a constant, the state that the last token stands for, whether the
// token is a marker and of which reply, and what attention found.
const (
	channelConstant = 0
	// channelOrdinary is 1 for tokens that are no marker, so that every
	// embedding has the same length and normalising changes none against another.
	channelOrdinary = 1
	channelFirst    = 2
	// embeddingOnes is how many channels of an embedding are 1.
	embeddingOnes = 3
)

// Attention finds the last marker. Queries are all alike; keys are zero but for
// markers; and the rotary angles are so slow that over the whole window no
// angle passes a right angle: the cosine only falls with the distance.
const (
	headSize  = 128
	ropePairs = headSize / 2
	// ropeBase spreads the frequencies a little, so that the rounding errors of
	// keys, which engines keep in 16 bits, are independent and average out.
	ropeBase = 1.25
	// ropeReach is the fastest pair's angle over the whole window, in radians.
	ropeReach = 1.0
	// ropeEnd is where all angles end: just before a right angle, so that even
	// the most distant marker has a score well above zero, that of other tokens.
	ropeEnd = 1.5
	// sharpness is the score of a marker at angle 0. In a window of 32,768
	// tokens it makes a marker ten tokens nearer e^5 times as heavy.
	sharpness = 32000.0
)

// Logits, before the last normalisation. With several replies to choose from
// the default one leads until attention finds another one's marker.
const (
	logitCertain  = 20
	logitDefault  = 14
	logitPossible = 10
	// logitSecond leads over all but the first choice.
	logitSecond = 6
	logitAsked  = 10
)

// feedForward is the width of the feed-forward part, which does nothing.
const feedForward = 64

// weights are the numbers of a model, in the order of [tensor].
type weights struct {
	width int
	// embedding and output have a row of width numbers for each token.
	embedding, output []float32
	// query, key and value take the residual stream to the head, merge takes it back.
	query, key, value, merge []float32
	// image is the embedding that stands for a picture, nil when no reply is for images.
	image []float32
}

// A layout assigns the channels.
type layout struct {
	width int
	state map[int]int
	// marker and found are by reply; voice is the place of a reply in the head.
	marker, found, voice map[string]int
}

func newLayout(p *plan) (*layout, error) {
	l := &layout{state: map[int]int{}, marker: map[string]int{}, found: map[string]int{}, voice: map[string]int{}}
	channel := channelFirst
	take := func() int { channel++; return channel - 1 }
	l.state[anyToken] = take()
	for _, s := range p.states {
		if s != anyToken {
			l.state[s] = take()
		}
	}
	for i, name := range p.asks {
		l.marker[name], l.found[name], l.voice[name] = take(), take(), i
	}
	if len(p.asks) > headSize {
		return nil, fmt.Errorf("more than %d replies", headSize)
	}
	l.width = (channel + 63) / 64 * 64
	return l, nil
}

// compute works out all weights of a plan.
func compute(p *plan) (*weights, error) {
	l, err := newLayout(p)
	if err != nil {
		return nil, err
	}
	tokens := len(p.vocab.tokens)
	w := &weights{
		width:     l.width,
		embedding: make([]float32, tokens*l.width),
		output:    make([]float32, tokens*l.width),
		query:     make([]float32, headSize*l.width),
		key:       make([]float32, headSize*l.width),
		value:     make([]float32, headSize*l.width),
		merge:     make([]float32, headSize*l.width),
	}
	for t := range tokens {
		w.embed(w.embedding[t*l.width:][:l.width], l, t, p.markers[t])
	}
	for _, name := range p.asks {
		if p.script.Replies[name].Image {
			w.image = make([]float32, l.width)
			w.embed(w.image, l, anyToken, name)
		}
	}
	w.attend(p, l)
	for from, byReply := range p.next {
		w.choose(l, from, byReply)
	}
	return w, nil
}

// embed fills the embedding of a token, which may ask for a reply.
func (w *weights) embed(row []float32, l *layout, token int, asks string) {
	state, ok := l.state[token]
	if !ok {
		state = l.state[anyToken]
	}
	row[channelConstant] = 1
	row[state] = 1
	if asks == "" {
		row[channelOrdinary] = 1
	} else {
		row[l.marker[asks]] = 1
	}
}

// ropeAngle is the angle by which pair turns with each token.
func ropeAngle(pair, context int) float64 {
	return ropeReach / float64(context) * math.Pow(ropeBase, -float64(pair)/ropePairs)
}

// attend makes the head look at the last marker and bring its reply home.
func (w *weights) attend(p *plan, l *layout) {
	// gain is what normalising makes of a 1 in an embedding.
	gain := math.Sqrt(float64(l.width) / embeddingOnes)
	// Engines divide scores by the root of the head's size.
	length := math.Sqrt(sharpness / ropePairs * math.Sqrt(headSize))
	for pair := range ropePairs {
		even, odd := 2*pair*l.width, (2*pair+1)*l.width
		phase := ropeEnd - ropeAngle(pair, p.script.Context)*float64(p.script.Context)
		w.query[even+channelConstant] = float32(length / gain)
		for _, marker := range l.marker {
			w.key[even+marker] = float32(length * math.Cos(phase) / gain)
			w.key[odd+marker] = float32(-length * math.Sin(phase) / gain)
		}
	}
	for name, voice := range l.voice {
		w.value[voice*l.width+l.marker[name]] = float32(1 / gain)
		w.merge[l.found[name]*headSize+voice] = 1
	}
}

// choose makes the output prefer, in one state, the successors that each reply wants.
func (w *weights) choose(l *layout, from int, byReply map[string][]int) {
	state := l.state[from]
	targets := map[int]bool{}
	for _, choices := range byReply {
		for _, to := range choices {
			targets[to] = true
		}
	}
	for reply, choices := range byReply {
		for rank, to := range choices {
			row := w.output[to*l.width:][:l.width]
			logit := float32(logitPossible)
			switch {
			case len(targets) == 1:
				logit = logitCertain
			case rank > 0:
				logit = logitSecond
			case reply == defaultReply:
				logit = logitDefault
			}
			row[state] = max(row[state], logit)
			if found, ok := l.found[reply]; ok && len(targets) > 1 {
				row[found] = logitAsked
			}
		}
	}
}
