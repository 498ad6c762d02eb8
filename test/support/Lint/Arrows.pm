package Lint::Arrows;

# Which folder may include from which: from its own, and from any that stands lower. Of the roots
# (extension, worker, console, base) two stand on base, and that is all.
use strict;
use warnings;
use Lint::Tree qw(found slurp files cpp_files);

# From top to bottom. Those of one level do not include each other. A name is a folder, or the stem
# of files beside the folders; '*' is every other file there.
my %order = (
    'extension' => [
        [qw(module)],
        [qw(transaction_end)],
        [qw(finish handler)],
        [qw(claim)],
        [qw(install)],
        [qw(queue)],
        [qw(limit)],
        [qw(liveness schedule parent add)],
        [qw(job background)],
        [qw(wake counters)],
        [qw(shared)],
        [qw(access)],
        [qw(server)],
    ],
    'worker/src' => [
        [qw(*)],
        [qw(crontab)],
        [qw(task claim)],
        [qw(jobs)],
        [qw(liveness)],
        [qw(session)],
        [qw(observe)],
    ],
    'worker/src/task' => [
        [qw(queues router served)],
        [qw(handler program function)],
        [qw(process)],
        [qw(executable)],
        [qw(supervised)],
    ],
    'base' => [
        [qw(cluster)],
        [qw(postgres)],
        [qw(http)],
        [qw(loop)],
        [qw(log)],
        [qw(text)],
    ],
    'console/src' => [
        [qw(*)],
        [qw(commands)],
        [qw(api pages service)],
        [qw(charts)],
        [qw(admission html)],
        [qw(serve top)],
        [qw(command_line)],
        [qw(job list)],
        [qw(output)],
        [qw(database)],
        [qw(text)],
    ],
);

my %stands_on = (extension => '', base => '', worker => 'base', console => 'base');
# Where includes of a root begin, besides beside the including file and at the top of the tree.
my %begins_at = (
    extension => 'extension', base => '.', worker => 'worker/src', console => 'console/src');

sub check {
    check_roots($_) for cpp_files();
    for my $root (sort keys %order) {
        my @files = grep { m{^\Q$root\E/} } cpp_files();
        # Before anything was put into folders there is no arrow between them.
        next if !grep { m{^\Q$root\E/\w+/} } @files;
        my $level = levels($order{$root});
        check_rooms($root, $level, @files);
        check_includes($root, $level, $_) for @files;
    }
    return;
}

# Each name of the table to the number of its level; 0 is the top.
sub levels {
    my ($table) = @_;
    my %level;
    for my $number (0 .. $#{$table}) {
        $level{$_} = $number for @{ $table->[$number] };
    }
    return \%level;
}

# The name under which a file's place stands in the table.
sub room_of {
    my ($root, $level, $file) = @_;
    my ($folder, $stem) = $file =~ m{^\Q$root\E/(?:(\w+)/.*|(\w+)\.\w+)$} or return;
    return $folder // (exists $level->{$stem} || !exists $level->{'*'} ? $stem : '*');
}

sub check_rooms {
    my ($root, $level, @files) = @_;
    my %seen;
    for my $file (@files) {
        my $room = room_of($root, $level, $file);
        found($file =~ m{^\Q$root\E/\w+/} ? "$root/$room" : $file,
            'has no level; move it into a folder, or give it one in test/support/Lint/Arrows.pm')
          if !exists $level->{$room} && !$seen{$room}++;
    }
    return;
}

sub check_includes {
    my ($root, $level, $file) = @_;
    my $from = room_of($root, $level, $file);
    return if !exists $level->{$from};
    my $number = 0;
    for (slurp($file)) {
        $number++;
        my ($name) = /^\s*#\s*include\s*"([^"]+)"/ or next;
        my $target = target($root, $file, $name) // next;
        my $to = room_of($root, $level, $target) // next;
        next if $to eq $from || !exists $level->{$to} || $level->{$to} > $level->{$from};
        my $where = $level->{$to} == $level->{$from} ? 'beside' : 'above';
        found("$file:$number", "includes $name, which stands $where '$from'; "
              . 'move down what both need');
    }
    return;
}

# What an include means: a file beside this one, or else one named from where includes of the root
# begin; undef for what is not ours, as access/genam.h of the server is.
sub target {
    my ($root, $file, $name) = @_;
    (my $beside = $file) =~ s{[^/]*$}{$name};
    1 while $beside =~ s{[^/]+/\.\./}{};
    my ($top) = $root =~ m{^([^/]+)};
    (my $named = "$begins_at{$top}/$name") =~ s{^\./}{};
    return (grep { -f } $beside, $named)[0];
}

# A name that means a file of no root that this one stands on.
sub check_roots {
    my ($file) = @_;
    my ($root) = $file =~ m{^(extension|base|worker|console)/} or return;
    my $number = 0;
    for (slurp($file)) {
        $number++;
        my ($name) = /^\s*#\s*include\s*"([^"]+)"/ or next;
        next if target($root, $file, $name) || $root eq 'worker' && -f "worker/$name";
        for my $other (grep { $_ ne $root && $_ ne $stands_on{$root} } sort keys %stands_on) {
            next if !defined target($other, "$other/x", $name);
            found("$file:$number", "includes $name of $other, on which $root does not stand; "
                  . 'move down to base what both need');
            last;
        }
    }
    return;
}

1;
