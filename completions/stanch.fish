complete --keep-order --exclusive --command stanch --arguments "(COMPLETE=fish stanch -- (commandline --current-process --tokenize --cut-at-cursor) (commandline --current-token))"
