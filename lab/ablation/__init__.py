"""What the labelled pairs lose without a part of the code, part by part: ``python -m lab.ablation``."""
