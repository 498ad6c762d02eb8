package Page;

# The pages for users, and the fenced blocks of one.
use strict;
use warnings;
use File::Find qw(find);

# Paths from the root of the tree.
sub all {
    my ($root) = @_;
    my @pages;
    find({ no_chdir => 1, wanted => sub { push @pages, $_ if /\.md$/ } }, "$root/docs")
      if -d "$root/docs";
    return 'README.md', 'CONTRIBUTING.md', sort map { substr $_, length("$root/") } @pages;
}

sub text_of {
    my ($root, $page) = @_;
    open my $handle, '<:encoding(UTF-8)', "$root/$page" or die "run_blocks: $page: $!\n";
    return join '', readline $handle;
}

# What a page says that it needs: a command that fails where it is missing.
sub needs {
    my ($root, $page) = @_;
    my ($command) = text_of($root, $page) =~ /^<!-- needs: (.*) -->$/m;
    return $command;
}

# Whether the readers of a page come from the quick start, as the role of the quick start.
sub is_after_quick_start {
    my ($root, $page) = @_;
    return text_of($root, $page) =~ /^<!-- after: quick-start\.md -->$/m;
}

# Language, text and first line of each block; no_run if its info string says so, and the file that
# the string names.
sub blocks {
    my ($root, $page) = @_;
    open my $handle, '<:encoding(UTF-8)', "$root/$page" or die "run_blocks: $page: $!\n";
    my (@blocks, $block, $indent, $fence);
    while (my $line = <$handle>) {
        if ($block) {
            if ($line =~ /^\s*\Q$fence\E`*\s*$/) { push @blocks, $block; undef $block }
            else { $block->{text} .= $line =~ s/^ {0,$indent}//r }
        }
        elsif ($line =~ /^(\s*)(```+)\s*(\w*)\s*(.*)$/) {
            ($indent, $fence) = (length $1, $2);
            my ($language, $info) = (lc $3, $4);
            $block = { page => $page, line => $., language => $language, text => '',
                no_run => $info =~ /\bno-run\b/ ? 1 : 0,
                file => $info =~ m{^([\w/.-]*\.\w+)$} ? $1 : undef };
        }
    }
    die "run_blocks: $page:$block->{line}: the block has no end\n" if $block;
    return @blocks;
}

1;
