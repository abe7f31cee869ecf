"""Where one job becomes one stored, checked asset: a maker for each kind of asset, over the ports."""
