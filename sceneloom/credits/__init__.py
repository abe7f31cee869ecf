"""Another company's ledger of credits: how it is asked, and how that is repeated until it has answered."""
