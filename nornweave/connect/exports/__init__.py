"""What exports of conversations share: their folder, and lines that name a speaker."""
