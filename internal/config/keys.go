package config

// KeyReferences lists the references to keys in the configuration: never a key.
func (c *Config) KeyReferences() []string {
	var refs []string
	add := func(ref string) {
		if ref != "" {
			refs = append(refs, ref)
		}
	}
	for i := range c.Engines {
		add(c.Engines[i].Key)
	}
	if c.DeepSeek != nil {
		add(c.DeepSeek.Key)
	}
	for i := range c.Hosted {
		add(c.Hosted[i].Key)
	}
	for i := range c.MCP {
		refs = append(refs, c.MCP[i].KeyReferences()...)
	}
	return refs
}
