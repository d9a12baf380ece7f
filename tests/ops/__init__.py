"""Every op function of the card against NumPy and PyTorch; README.md says what is swept and how to read a failure."""
